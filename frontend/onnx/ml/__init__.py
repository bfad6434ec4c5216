"""The domain ai.onnx.ml: models of scikit-learn, XGBoost and LightGBM as skl2onnx and onnxmltools write them.

What the specification leaves open (which class a single score decides for, which transforms a single score gets) is as in ONNX Runtime,
which these exporters check their models with.

Modules: `scores` has what classifiers and regressors do with their scores, `nodes` reads tree ensembles into arrays, `tables` makes the
tables of the program of them; the others hold the converters of a family each.
"""

from relayc.frontend.onnx.ml import encoders, features, linear, maps, svm, trees
