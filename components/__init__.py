"""Typed Pulumi components for distributed TensorFlow on Kubeflow Trainer v2."""
