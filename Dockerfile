# The toolkit and its three scripts, for CPU, or for GPU with --build-arg EXTRAS=gpu (docs/docker.md).
ARG BASE_IMAGE=debian:12-slim

FROM ${BASE_IMAGE} AS build
ARG EXTRAS=""
RUN apt-get update \
    && apt-get install -y --no-install-recommends python3-venv \
    && python3 -m venv /opt/fls
WORKDIR /src
COPY requirements.txt ./
# tensorflow-cpu is the same release without the GPU's kernels, 400 MB less; its wheels are for amd64 only.
RUN if [ -z "${EXTRAS}" ] && [ "$(dpkg --print-architecture)" = amd64 ]; then \
        sed -i 's/^tensorflow==/tensorflow-cpu==/' requirements.txt; \
    fi \
    && /opt/fls/bin/pip install --no-cache-dir --no-compile -r requirements.txt
COPY . .
RUN /opt/fls/bin/pip install --no-cache-dir --no-compile --no-deps ./streaming-image-env . \
    && if [ -n "${EXTRAS}" ]; then \
        /opt/fls/bin/pip install --no-cache-dir --no-compile -c requirements.txt ".[${EXTRAS}]"; \
    fi
# Out go the tests, the C++ headers, the clang that nothing imports and, last, pip. The imports prove that the
# rest still works, and leave byte code of just the modules that are used: TensorFlow starts much faster with it.
RUN cd /opt/fls/lib/python3*/site-packages \
    && find . -depth -type d \( -name tests -o -name __pycache__ \) -exec rm -rf {} + \
    && rm -rf tensorflow/include clang \
    && /opt/fls/bin/pip uninstall -y pip wheel \
    && /opt/fls/bin/python -m compileall -q fl_saliency streaming_image_env \
    && /opt/fls/bin/python -c "import ale_py, av, cv2, gymnasium, joblib, keras, matplotlib.pyplot, pandas, \
scipy.stats, sklearn.metrics, tensorboard, tensorflow, requests, tqdm, tyro, fl_saliency.cli.main"

FROM ${BASE_IMAGE}
# ca-certificates: for fls data, which downloads over https.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates python3 \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
COPY --from=build /opt/fls /opt/fls
COPY docker/entrypoint.sh /usr/local/bin/fls-entrypoint
WORKDIR /work
COPY train_baselines.py run_baselines.py benchmark_atari_head.py ./
# Any --user will do: no home, no line in /etc/passwd is needed; caches go to /tmp, results to the mounts.
# The NVIDIA lines matter to its container runtime only.
ENV PATH=/opt/fls/bin:$PATH \
    HOME=/tmp USER=fls LANG=C.UTF-8 \
    MPLCONFIGDIR=/tmp/matplotlib KERAS_HOME=/tmp/keras \
    PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000:1000
ENTRYPOINT ["fls-entrypoint"]
CMD ["fls", "--help"]
