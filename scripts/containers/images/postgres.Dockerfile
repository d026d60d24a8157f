# PostgreSQL: a server that is configured by variables and arguments, as in the image postgres.
ARG ROOTFS
FROM $ROOTFS
ENV PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data
COPY postgres-server.sh /usr/local/bin/
ENTRYPOINT ["/usr/local/bin/postgres-server.sh"]
CMD ["postgres"]
STOPSIGNAL SIGINT
