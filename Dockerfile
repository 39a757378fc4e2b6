# Python and torch, and what dist_dcgan.py and Paceline's own trainers need; nothing else.
#
#   docker build -t dist_dcgan .
#   docker build -t dist_dcgan --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu126 .
#   docker build -t dist_dcgan --build-arg PACKAGES=openmpi-bin .
#
# The working directory is /root: mount your own there, and what it holds goes over the image's.
ARG BASE=python:3.12-slim
FROM ${BASE}

# No TORCH: the base image has one. PACKAGES are Debian's, such as openmpi-bin for mpirun.
ARG TORCH=2.13.0
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG PACKAGES=
ENV PIP_BREAK_SYSTEM_PACKAGES=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

RUN if [ -n "$PACKAGES" ]; then \
        apt-get update && apt-get install -y --no-install-recommends $PACKAGES \
        && rm -rf /var/lib/apt/lists/*; \
    fi
# People type `python`; some base images have python3 alone.
RUN command -v python >/dev/null || ln -s "$(command -v python3)" /usr/local/bin/python
RUN if [ -n "$TORCH" ]; then \
        python -m pip install --no-cache-dir --extra-index-url "$TORCH_INDEX" "torch==$TORCH" numpy; \
    fi

COPY src/paceline /opt/paceline/src/paceline
COPY dist_dcgan.py /opt/paceline/
COPY dist_dcgan.py /root/
# A checkout that is mounted comes first, the image's own copy after it.
ENV PYTHONPATH=/root/src:/opt/paceline/src
WORKDIR /root
