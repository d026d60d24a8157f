# VersityGW, an S3 server; arguments are the server's, as in the image versity/versitygw.
ARG ROOTFS
FROM $ROOTFS
COPY versitygw /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/versitygw"]
