# The image of a controller that survives its node, and of its balancers: docs/high-availability.md.
#   docker build -t REGISTRY/svc:TAG . && docker push REGISTRY/svc:TAG
# Neither build needs anything but this checkout, Debian's packages and npm's, whose checksums package-lock.json has.
ARG BUILD_IMAGE=docker.io/library/node:24-bookworm-slim
ARG BASE_IMAGE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --include=optional --no-update-notifier
COPY src src
COPY catalog catalog
COPY scripts/bundle.ts scripts/bundle.ts
# The very Node.js that the project pins is the one that is used here and the one that goes into the image.
RUN install -D -m 0755 node_modules/node-linux-*/bin/node /out/usr/local/bin/node \
  && /out/usr/local/bin/node scripts/bundle.ts \
  && mkdir -p /out/opt \
  && mv dist/bundle /out/opt/svc \
  && chmod -R a+rX,go-w /out \
  && find /out -exec touch -h -d @0 {} +

FROM ${BASE_IMAGE}
# ssh and rsync lead to hosts of one's own; tini ends what its child left behind. None of the files that differ from build to build stay.
RUN apt-get update \
  && apt-get install -y --no-install-recommends libstdc++6 openssh-client rsync tini \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt /var/cache/debconf/*-old /var/cache/ldconfig /var/lib/dpkg/*-old /var/log/* /tmp/* \
  && groupadd --system --gid 10001 svc \
  && useradd --uid 10001 --gid 10001 --home-dir /var/lib/svc --no-create-home --shell /usr/sbin/nologin svc \
  && rm -f /etc/passwd- /etc/group- /etc/shadow- /etc/gshadow- \
  && install -d -o 10001 -g 10001 -m 0700 /var/lib/svc
COPY --from=build /out /
LABEL org.opencontainers.image.title="svc" \
  org.opencontainers.image.description="Controller and balancers of svc" \
  org.opencontainers.image.licenses="Apache-2.0"
# All that is ever written is below these two: volumes, where the root file system is read-only.
ENV SVC_HOME=/var/lib/svc HOME=/var/lib/svc TMPDIR=/tmp NODE_ENV=production
WORKDIR /opt/svc
USER 10001:10001
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/node"]
# The controller; balancers run src/bundle/controller-edge-proxy-main.js.
CMD ["/opt/svc/src/bundle/controller-main.js"]
