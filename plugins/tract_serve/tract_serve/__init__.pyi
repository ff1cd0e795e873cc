"""The public names, and where they are from."""

from tract_serve.application import application as application
from tract_serve.errors import Refusal as Refusal
from tract_serve.http.application import Application as Application
from tract_serve.server import Server as Server
from tract_serve.serving import Serving as Serving
from tract_serve.settings import Limits as Limits
from tract_serve.settings import Settings as Settings
