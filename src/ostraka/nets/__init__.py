"""Network recipes. Importing this package registers the built-in ones."""

from ostraka.nets import lenet5, mlp, simple_cnn, vgg

__all__ = ["lenet5", "mlp", "simple_cnn", "vgg"]
