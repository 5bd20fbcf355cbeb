"""Network recipes. Importing this package registers the built-in ones."""

from ostraka.nets import digits, lenet5, mlp, simple_cnn, vgg, wideresnet

__all__ = ["digits", "lenet5", "mlp", "simple_cnn", "vgg", "wideresnet"]
