"""Network recipes. Importing this package registers the built-in ones."""

from ostraka.nets import conv4, digits, lenet5, mlp, simple_cnn, vgg, wideresnet

__all__ = ["conv4", "digits", "lenet5", "mlp", "simple_cnn", "vgg", "wideresnet"]
