"""The public names, and where they are from."""

from tract_ray.cluster import put as put
from tract_ray.cluster import warm_nodes as warm_nodes
from tract_ray.errors import BadRows as BadRows
from tract_ray.placing import PlacedModel as PlacedModel
from tract_ray.predictor import Predictor as Predictor
from tract_ray.predictor import warm as warm
