"""Networks as the NNEF 1.0.5 specification writes them."""

from __future__ import annotations

from typing import Final

FRAGMENTS: Final = """version 1.0;
extension KHR_enable_fragment_definitions;
extension KHR_enable_operator_expressions;
"""

ALEXNET: Final = """version 1.0;

graph AlexNet( input ) -> ( output )
{
    input = external<scalar>(shape = [1, 3, 67, 67]);
    kernel1 = variable<scalar>(shape = [8, 3, 11, 11], label = 'alexnet_v2/conv1/kernel');
    bias1 = variable<scalar>(shape = [1, 8], label = 'alexnet_v2/conv1/bias');
    conv1 = conv(input, kernel1, bias1, padding = [(0,0), (0,0)], border = 'constant', stride = [4,
        4], dilation = [1, 1]);
    relu1 = relu(conv1);
    norm1 = local_response_normalization(relu1, size = [1, 5, 1, 1], alpha = 1e-4, beta = 0.75, bias = 1.0);
    pool1 = max_pool(norm1, size = [1, 1, 3, 3], stride = [1, 1, 2, 2], border = 'ignore',
        padding = [(0,0), (0,0), (0,0), (0,0)]);
    kernel2 = variable<scalar>(shape = [12, 4, 5, 5], label = 'alexnet_v2/conv2/kernel');
    bias2 = variable<scalar>(shape = [1, 12], label = 'alexnet_v2/conv2/bias');
    conv2 = conv(pool1, kernel2, bias2, groups = 2);
    relu2 = relu(conv2);
    pool2 = max_pool(relu2, size = [1, 1, 3, 3], stride = [1, 1, 2, 2], border = 'ignore', padding = []);
    flat = reshape(pool2, shape = [0, -1]);
    weight3 = variable<scalar>(shape = [10, 192], label = 'alexnet_v2/fc8:0/kernel');
    bias3 = variable<scalar>(shape = [1, 10], label = 'alexnet_v2/fc8:0/bias');
    fc = linear(flat, weight3, bias3);
    output = softmax(fc);
}
"""

GOOGLENET: Final = (
    FRAGMENTS
    + """
fragment conv_relu( input: tensor<scalar>, kernel: tensor<scalar>, bias: tensor<scalar>, stride: integer[] = [] )
-> ( output: tensor<scalar> )
{
    output = relu(conv(input, kernel, bias, stride = stride));
}

fragment inception( input: tensor<scalar>, kernels: tensor<scalar>[], biases: tensor<scalar>[] )
-> ( output: tensor<scalar> )
{
    one = conv_relu(input, kernels[0], biases[0]);
    three = conv_relu(conv_relu(input, kernels[1], biases[1]), kernels[2], biases[2]);
    five = conv_relu(conv_relu(input, kernels[3], biases[3]), kernels[4], biases[4]);
    pool = conv_relu(max_pool(input, size = [1, 1, 3, 3], border = 'ignore'), kernels[5], biases[5]);
    output = concat([one, three, five, pool], axis = 1);
}

graph GoogLeNet( input ) -> ( scores )
{
    input = external<scalar>(shape = [2, 3, 29, 31]);
    k = variable<scalar>(shape = [6, 3, 7, 7], label = 'conv1/weights');
    b = variable<scalar>(shape = [1, 6], label = 'conv1/bias');
    k0 = variable<scalar>(shape = [4, 6, 1, 1], label = 'inception_3a/1x1:0');
    k1 = variable<scalar>(shape = [3, 6, 1, 1], label = 'inception_3a/3x3_reduce:0');
    k2 = variable<scalar>(shape = [6, 3, 3, 3], label = 'inception_3a/3x3:0');
    k3 = variable<scalar>(shape = [2, 6, 1, 1], label = 'inception_3a/5x5_reduce:0');
    k4 = variable<scalar>(shape = [3, 2, 5, 5], label = 'inception_3a/5x5:0');
    k5 = variable<scalar>(shape = [2, 6, 1, 1], label = 'inception_3a/proj:0');
    b0 = variable<scalar>(shape = [1, 4], label = 'inception_3a/1x1:1');
    b1 = variable<scalar>(shape = [1, 3], label = 'inception_3a/3x3_reduce:1');
    b2 = variable<scalar>(shape = [1, 6], label = 'inception_3a/3x3:1');
    b3 = variable<scalar>(shape = [1, 2], label = 'inception_3a/5x5_reduce:1');
    b4 = variable<scalar>(shape = [1, 3], label = 'inception_3a/5x5:1');
    b5 = variable<scalar>(shape = [1, 2], label = 'inception_3a/proj:1');
    conv1 = conv_relu(input, k, b, stride = [2, 2]);
    pool1 = max_pool(conv1, size = [1, 1, 3, 3], stride = [1, 1, 2, 2], border = 'ignore');
    norm1 = local_response_normalization(pool1, size = [1, 5, 1, 1], alpha = 0.0001, beta = 0.75, bias = 1.0);
    mixed = inception(norm1, [k0, k1, k2, k3, k4, k5], [b0, b1, b2, b3, b4, b5]);
    pool2 = avg_pool(mixed, size = [1, 1, 3, 3], stride = [1, 1, 2, 2], border = 'ignore',
        padding = [(0,0), (0,0), (0,1), (0,1)]);
    pooled = mean_reduce(pool2, axes = [2, 3]);
    w = variable<scalar>(shape = [15, 7], label = 'loss3/classifier');
    scores = log(softmax(matmul(squeeze(pooled, axes = [2, 3]), w), axes = [1]));
}
"""
)

RESNET: Final = (
    FRAGMENTS
    + """
fragment normalized( input: tensor<scalar>, values: tensor<scalar>[] ) -> ( output: tensor<scalar> )
{
    output = batch_normalization(input, values[0], values[1] * values[1] + 0.1, values[2], values[3], epsilon = 1e-3);
}

fragment bottleneck( input: tensor<scalar>, kernels: tensor<scalar>[], inner: tensor<scalar>[],
    outer: tensor<scalar>[], stride: integer )
-> ( output: tensor<scalar> )
{
    a = relu(normalized(conv(input, kernels[0]), inner));
    b = relu(normalized(conv(a, kernels[1], padding = [(1,1), (1,1)], stride = [stride, stride]), inner));
    c = normalized(conv(b, kernels[2]), outer);
    shortcut = conv(input, kernels[3], padding = [(0,0), (0,0)], stride = [stride, stride]);
    output = relu(c + shortcut);
}

graph ResNet( input ) -> ( output )
{
    input = external<scalar>(shape = [1, 3, 32, 32]);
    k = variable<scalar>(shape = [8, 3, 7, 7], label = 'conv1');
    m8 = variable<scalar>(shape = [1, 8], label = 'bn1/moving_mean');
    v8 = variable<scalar>(shape = [1, 8], label = 'bn1/spread');
    b8 = variable<scalar>(shape = [1, 8], label = 'bn1/beta');
    g8 = variable<scalar>(shape = [1, 8], label = 'bn1/gamma');
    m4 = variable<scalar>(shape = [1, 4], label = 'block1/bn1/moving_mean');
    v4 = variable<scalar>(shape = [1, 4], label = 'block1/bn1/spread');
    b4 = variable<scalar>(shape = [1, 4], label = 'block1/bn1/beta');
    g4 = variable<scalar>(shape = [1, 4], label = 'block1/bn1/gamma');
    k1 = variable<scalar>(shape = [4, 8, 1, 1], label = 'block1/conv1');
    k2 = variable<scalar>(shape = [4, 4, 3, 3], label = 'block1/conv2');
    k3 = variable<scalar>(shape = [8, 4, 1, 1], label = 'block1/conv3');
    k4 = variable<scalar>(shape = [8, 8, 1, 1], label = 'block1/shortcut');
    a = relu(normalized(conv(input, k, stride = [2, 2], padding = [(3,3), (3,3)]), [m8, v8, b8, g8]));
    b = max_pool(a, size = [1, 1, 3, 3], stride = [1, 1, 2, 2], padding = [(0,0), (0,0), (1,1),
        (1,1)], border = 'ignore');
    c = bottleneck(b, [k1, k2, k3, k4], [m4, v4, b4, g4], [m8, v8, b8, g8], stride = 1);
    d = bottleneck(c, [k1, k2, k3, k4], [m4, v4, b4, g4], [m8, v8, b8, g8], stride = 2);
    e = avg_pool(d, size = [1, 1, 4, 4], padding = [(0,0), (0,0), (0,0), (0,0)], border = 'constant');
    f = reshape(e, shape = [1, 8]);
    w = variable<scalar>(shape = [5, 8], label = 'fc/weights');
    bias = variable<scalar>(shape = [1, 5], label = 'fc/bias');
    output = softmax(linear(f, w, bias));
}
"""
)

MOBILENET: Final = (
    FRAGMENTS
    + """
fragment relu6( x: tensor<scalar> ) -> ( y: tensor<scalar> )
{
    y = clamp(x, 0.0, 6.0);
}

fragment inverted( input: tensor<scalar>, kernels: tensor<scalar>[], stride: integer, shortcut: logical = false )
-> ( output: tensor<scalar> )
{
    a = relu6(conv(input, kernels[0]));
    b = relu6(conv(a, kernels[1], stride = [stride, stride], groups = 0));
    c = conv(b, kernels[2]);
    output = input + c if shortcut && stride == 1 else c;
}

graph MobileNet( input ) -> ( output )
{
    input = external<scalar>(shape = [1, 3, 33, 30]);
    k = variable<scalar>(shape = [4, 3, 3, 3], label = 'Conv/weights');
    a = relu6(conv(input, k, stride = [2, 2]));
    plane = variable<scalar>(shape = [4, 1, 3, 3], label = 'separable/depthwise');
    point = variable<scalar>(shape = [6, 4, 1, 1], label = 'separable/pointwise');
    bias = variable<scalar>(shape = [1, 6], label = 'separable/bias');
    b = relu6(separable_conv(a, plane, point, bias, padding = [], stride = [1, 1]));
    k1 = variable<scalar>(shape = [12, 6, 1, 1], label = 'expanded/1');
    k2 = variable<scalar>(shape = [12, 1, 3, 3], label = 'expanded/2');
    k3 = variable<scalar>(shape = [6, 12, 1, 1], label = 'expanded/3');
    c = inverted(b, [k1, k2, k3], stride = 1, shortcut = true);
    d = inverted(c, [k1, k2, k3], stride = 2);
    pooled = mean_reduce(d, axes = [2, 3]);
    f = variable<scalar>(shape = [5, 6, 1, 1], label = 'Logits/Conv2d_1c_1x1:weights');
    logits = conv(pooled, f, padding = [(0,0), (0,0)]);
    output = softmax(squeeze(logits, axes = [2, 3]), axes = [1]);
}
"""
)

SSD: Final = (
    FRAGMENTS
    + """
fragment head( input: tensor<scalar>, kb: tensor<scalar>, kc: tensor<scalar>, bias: tensor<scalar> )
-> ( boxes: tensor<scalar>, classes: tensor<scalar> )
{
    boxes = reshape(transpose(conv(input, kb), axes = [0, 2, 3, 1]), shape = [0, -1, 4]);
    classes = reshape(transpose(conv(input, kc, bias), axes = [0, 2, 3, 1]), shape = [0, -1, 3]);
}

graph SSD( image, anchors ) -> ( boxes, classes, best, certain )
{
    image = external<scalar>(shape = [2, 3, 24, 24]);
    anchors = external<scalar>(shape = [1, 720, 4]);
    k1 = variable<scalar>(shape = [8, 3, 3, 3], label = 'base/1');
    k2 = variable<scalar>(shape = [8, 8, 3, 3], label = 'base/2');
    scale = variable<scalar>(shape = [1, 8, 1, 1], label = 'base/scale');
    f1 = relu(conv(image, k1, stride = [2, 2]));
    f2 = relu(conv(f1, k2, stride = [2, 2]));
    [n1, n2] = [for f in [f1, f2] yield l2_normalization(f, axes = [1], epsilon = 1e-4) * scale];
    kb = variable<scalar>(shape = [16, 8, 3, 3], label = 'head/box');
    kc = variable<scalar>(shape = [12, 8, 1, 1], label = 'head/class');
    bias = variable<scalar>(shape = [1, 12], label = 'head/class_bias');
    (b1, c1) = head(n1, kb, kc, bias);
    (b2, c2) = head(n2, kb, kc, bias);
    offsets = concat([b1, b2], axis = 1);
    [anchor_centre, anchor_size] = split(anchors, axis = 2, ratios = [1, 1]);
    [centre, size] = split(offsets, axis = 2, ratios = [1, 1]);
    boxes = concat([anchor_centre + 0.1 * centre * anchor_size, anchor_size * exp(0.2 * size)], axis = 2);
    classes = sigmoid(concat([c1, c2], axis = 1));
    best = argmax_reduce(classes, axes = [2]);
    certain = max_reduce(classes, axes = [2]) > 0.6;
}
"""
)

UNET: Final = (
    FRAGMENTS
    + """
fragment twice( input: tensor<scalar>, k1: tensor<scalar>, k2: tensor<scalar>, b2: tensor<scalar> )
-> ( output: tensor<scalar> )
{
    output = leaky_relu(conv(leaky_relu(conv(input, k1), alpha = 0.1), k2, b2, border = 'replicate'), alpha = 0.1);
}

fragment half( x: tensor<scalar> ) -> ( y: tensor<scalar> )
{
    y = max_pool(x, size = [1,1,2,2], stride = [1,1,2,2], border = 'ignore', padding = [(0,0), (0,0), (0,0), (0,0)]);
}

graph UNet( image ) -> ( mask, coarse, smooth )
{
    image = external<scalar>(shape = [1, 2, 16, 24]);
    k1 = variable<scalar>(shape = [4, 2, 3, 3], label = 'down/1/a');
    k2 = variable<scalar>(shape = [4, 4, 3, 3], label = 'down/1/b');
    k3 = variable<scalar>(shape = [8, 4, 3, 3], label = 'down/2/a');
    k4 = variable<scalar>(shape = [8, 8, 3, 3], label = 'down/2/b');
    b4 = variable<scalar>(shape = [1, 4], label = 'down/1/bias');
    b8 = variable<scalar>(shape = [1, 8], label = 'down/2/bias');
    u1 = variable<scalar>(shape = [8, 4, 2, 2], label = 'up/1/raise');
    k5 = variable<scalar>(shape = [4, 8, 3, 3], label = 'up/1/a');
    d1 = twice(image, k1, k2, b4);
    d2 = twice(half(d1), k3, k4, b8);
    raised = deconv(d2, u1, b4, stride = [2, 2], padding = [(0,0), (0,0)]);
    joined = twice(concat([d1, raised], axis = 1), k5, k2, b4);
    k = variable<scalar>(shape = [1, 4, 1, 1], label = 'out');
    mask = sigmoid(conv(joined, k));
    k6 = variable<scalar>(shape = [8, 3, 3, 3], label = 'coarse');
    odd = deconv(d2, k6, stride = [2, 2], output_shape = [1, 3, 16, 24]);
    coarse = nearest_upsample(odd, factor = [2, 2]);
    smooth = multilinear_upsample(d2, factor = [2, 2], method = 'symmetric', border = 'replicate');
}
"""
)

LSTM: Final = (
    FRAGMENTS
    + """
fragment lstm_step( x: tensor<scalar>, h: tensor<scalar>, c: tensor<scalar>, W: tensor<scalar>, b: tensor<scalar> )
-> ( h_out: tensor<scalar>, c_out: tensor<scalar> )
{
    m = linear(concat([x, h], axis = 1), W, b);
    [i, j, f, o] = split(m, axis = 1, ratios = [1, 1, 1, 1]);
    c_out = c * sigmoid(f + 1.0) + sigmoid(i) * tanh(j);
    h_out = tanh(c_out) * sigmoid(o);
}

graph LSTM( xs ) -> ( hs, last, normalized )
{
    xs = external<scalar>(shape = [4, 2, 3]);
    [x0, x1, x2, x3] = unstack(xs, axis = 0);
    zero = constant<scalar>(shape = [2, 5], value = [0.0]);
    W = variable<scalar>(shape = [20, 8], label = 'rnn/lstm_cell/kernel');
    b = variable<scalar>(shape = [1, 20], label = 'rnn/lstm_cell/bias');
    (h0, c0) = lstm_step(x0, zero, zero, W, b);
    (h1, c1) = lstm_step(x1, h0, c0, W, b);
    (h2, c2) = lstm_step(x2, h1, c1, W, b);
    (h3, c3) = lstm_step(x3, h2, c2, W, b);
    hs = stack([h0, h1, h2, h3], axis = 1);
    last = slice(hs, axes = [1], begin = [-1], end = [0]);
    (mean, variance) = moments(hs, axes = [2]);
    normalized = (hs - mean) / sqrt(variance + 1e-5);
}
"""
)

STYLE: Final = (
    FRAGMENTS
    + """
fragment instance_norm( x: tensor<scalar>, scale: tensor<scalar>, shift: tensor<scalar> ) -> ( y: tensor<scalar> )
{
    (mean, variance) = moments(x, axes = [2, 3]);
    y = (x - mean) * rsqrt(variance + 1e-5) * scale + shift;
}

fragment residual( x: tensor<scalar>, k: tensor<scalar>, scale: tensor<scalar>, shift: tensor<scalar> )
-> ( y: tensor<scalar> )
{
    padded = pad(x, padding = [(0,0), (0,0), (1,1), (1,1)], border = 'reflect');
    y = x + elu(instance_norm(conv(padded, k, padding = [(0,0), (0,0)]), scale, shift));
}

graph Style( image ) -> ( out )
{
    image = external<scalar>(shape = [1, 3, 12, 14]);
    k = variable<scalar>(shape = [6, 3, 3, 3], label = 'in');
    a = silu(conv(image, k, stride = [2, 2], dilation = [2, 2]));
    r = variable<scalar>(shape = [6, 6, 3, 3], label = 'residual/kernel');
    scale = variable<scalar>(shape = [1, 6, 1, 1], label = 'residual/scale');
    shift = variable<scalar>(shape = [1, 6, 1, 1], label = 'residual/shift');
    b = residual(residual(a, r, scale, shift), r, scale, shift);
    c = gelu(nearest_upsample(b, factor = [2, 2]));
    k2 = variable<scalar>(shape = [3, 6, 5, 5], label = 'out');
    out = 0.5 * (tanh(conv(c, k2)) + 1.0) ^ 2.0;
}
"""
)

TEXT: Final = (
    FRAGMENTS
    + """
graph Text( tokens, mask ) -> ( scores, any, kept )
{
    tokens = external<integer>(shape = [2, 7]);
    mask = external<logical>(shape = [2, 7]);
    table = variable<scalar>(shape = [11, 6], label = 'embedding/table');
    e = gather(table, tokens, axis = 0);
    wq = variable<scalar>(shape = [1, 6, 6], label = 'attention/query:0');
    wk = variable<scalar>(shape = [1, 6, 6], label = 'attention/key:0');
    q = matmul(e, wq);
    k = matmul(e, wk);
    s = matmul(q, k, transposeB = true) / sqrt(6.0);
    held = select(unsqueeze(mask, axes = [1]), s, -1e9);
    p = softmax(held, axes = [2]);
    v = matmul(p, e);
    scores = l1_normalization(leaky_relu(v, alpha = 0.2), axes = [2], epsilon = 1e-3);
    numbers = cast<scalar>(tokens);
    any = any_reduce(and(mask, numbers != 0.0), axes = [1]);
    kept = sum_reduce(select(or(numbers >= 3.0, numbers < 1.0), 1.0, 0.0), axes = [1]);
}
"""
)

VOLUME: Final = (
    FRAGMENTS
    + """
graph Volume( x ) -> ( out, places, spread )
{
    x = external<scalar>(shape = [1, 2, 6, 7, 8]);
    k = variable<scalar>(shape = [4, 2, 3, 3, 3], label = 'k1');
    a = softplus(conv(x, k, stride = [1, 2, 2]));
    (b, places) = max_pool_with_index(a, size = [1, 1, 2, 2, 2], stride = [1, 1, 2, 2, 2], border = 'ignore');
    d = rms_pool(b, size = [1, 1, 3, 1, 1], border = 'ignore');
    e = box(d, size = [1, 1, 1, 2, 2], padding = [(0,0),(0,0),(0,0),(0,0),(0,0)], normalize = true);
    r = variable<scalar>(shape = [4, 3, 1, 2, 2], label = 'k2');
    out = deconv(e, r, padding = [(0,0), (0,0), (0,0)]);
    spread = local_contrast_normalization(b, size = [1, 1, 3, 3, 3], bias = 1.0, epsilon = 1e-2);
}
"""
)

COMPREHENSIONS: Final = (
    FRAGMENTS
    + """
fragment scaled( xs: tensor<scalar>[], factors: scalar[] ) -> ( ys: tensor<scalar>[] )
{
    ys = [for x in xs, f in factors if f > 0.0 yield x * f];
}

fragment summed( x: tensor<scalar>, widths: integer[], heights: integer[], last: logical = false )
-> ( y: tensor<scalar> )
{
    parts = [for width in widths, height in heights yield box(x, size = [1, 1, width, height], normalize = true)];
    every = concat(parts, axis = 1);
    y = sum_reduce(every, axes = [1]) / scalar(length_of(parts)) if !last else parts[length_of(parts) - 1];
}

graph Comprehensions( x ) -> ( y, z, t )
{
    x = external<scalar>(shape = [2, 3, 5, 5]);
    [a, b] = scaled([x, x, x], factors = [0.5, -1.0, 2.0]);
    y = summed(a + b, widths = [1, 3, 3], heights = [3, 1, 3]);
    z = summed(a - b, widths = [1, 3, 3], heights = [3, 1, 3], last = true);
    powers = [for i in range_of([x, x, x]) yield x ^ scalar(i)];
    t = add_n(powers);
}
"""
)

QUANTIZED: Final = """version 1.0;

graph Quantized( image ) -> ( scores )
{
    image = external<scalar>(shape = [1, 3, 8, 8]);
    k1 = variable<scalar>(shape = [4, 3, 3, 3], label = 'conv/kernel');
    a = relu(conv(image, k1));
    k2 = variable<scalar>(shape = [5, 4, 1, 1], label = 'conv/point');
    b = conv(a, k2);
    pooled = max_pool(b, size = [1, 1, 2, 2], stride = [1, 1, 2, 2], border = 'ignore');
    scores = mean_reduce(pooled, axes = [2, 3]);
}
"""

QUANTIZATION: Final = """
"k1": zero_point_linear_quantize(zero_point = 121, scale = 0.01, bits = 8, signed = false, symmetric = false);
"k2": zero_point_linear_quantize(zero_point = 0, scale = 0.0125, bits = 8, signed = true, symmetric = true);
"a": linear_quantize(min = 0.0, max = 6.375, bits = 8);
"b": linear_quantize(min = -2.0, max = 3.1, bits = 8);
"pooled": linear_quantize(min = -2.0, max = 3.1, bits = 8);
"""

GRAPHS: Final = {
    "AlexNet": ALEXNET,
    "GoogLeNet": GOOGLENET,
    "ResNet": RESNET,
    "MobileNet": MOBILENET,
    "SSD": SSD,
    "U-Net": UNET,
    "LSTM": LSTM,
    "style": STYLE,
    "text": TEXT,
    "volume": VOLUME,
    "comprehensions": COMPREHENSIONS,
}
