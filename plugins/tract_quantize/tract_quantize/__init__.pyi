"""The public names, and where they are from."""

from tract_quantize.calibration.calibrating import calibrate as calibrate
from tract_quantize.quantizing import Quantized as Quantized
from tract_quantize.quantizing import quantize as quantize
from tract_quantize.ranges import Calibration as Calibration
from tract_quantize.ranges import Range as Range
from tract_quantize.samples import random_samples as random_samples
from tract_quantize.samples import samples_in as samples_in
from tract_quantize.transforms.static import QuantizeStatic as QuantizeStatic
from tract_quantize.transforms.weights import QuantizeWeights as QuantizeWeights
