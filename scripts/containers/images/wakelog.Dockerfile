# A binary that is built already, for trying images out; deploy/Dockerfile is what services are run from.
ARG ROOTFS
FROM $ROOTFS
COPY wakelog /usr/local/bin/
USER nobody
ENTRYPOINT ["/usr/local/bin/wakelog"]
