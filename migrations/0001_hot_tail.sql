-- The hot tail: what the fold of the topic says of each session.
--
-- Written by the persister alone, one transaction for each batch of a partition; session_pins also by the
-- reconstructor. No foreign keys: the fold decides what exists, and a key check would lock rows of other sessions.
-- No unique index on idempotency keys: a key of one session must never block another one.

CREATE TABLE session_pins (
    session_id         uuid        PRIMARY KEY,
    partition          integer     NOT NULL CHECK (partition >= 0),
    binding_generation bigint      NOT NULL DEFAULT 0 CHECK (binding_generation >= 0),
    binding_raised_at  timestamptz
) WITH (fillfactor = 90);

COMMENT ON TABLE session_pins IS
    'the partition of each session, fixed when it is opened; kept as a tombstone when it is erased';
COMMENT ON COLUMN session_pins.binding_generation IS
    'the highest generation that somebody is about to bind; raised before the bind is published, never lowered';

CREATE TABLE agent_sessions (
    session_id          uuid        PRIMARY KEY,
    partition           integer     NOT NULL CHECK (partition >= 0),
    owner               text        NOT NULL,
    labels              jsonb       NOT NULL,
    parent              uuid,
    subpath             text        NOT NULL,
    fold_state          bytea       NOT NULL,
    last_entry_seq      bigint      NOT NULL CHECK (last_entry_seq >= 0),
    last_checkpoint_seq bigint      NOT NULL CHECK (last_checkpoint_seq >= 0),
    generation          bigint      NOT NULL CHECK (generation >= 0),
    lifetime_status     integer     NOT NULL,
    erased              boolean     NOT NULL,
    opened_at           timestamptz NOT NULL DEFAULT now(),
    updated_at          timestamptz NOT NULL DEFAULT now()
) WITH (
    -- Every batch updates the rows of its sessions. No updated column is indexed, so with room on the page the
    -- update stays there (HOT) and no index grows.
    fillfactor = 60,
    -- The old fold states are dead TOAST rows: clean up early, a busy session replaces its state many times a minute.
    autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_scale_factor = 0.02
);

-- The state is mostly hashes: compressing it would cost time and save nothing.
ALTER TABLE agent_sessions ALTER COLUMN fold_state SET STORAGE EXTERNAL;

CREATE INDEX agent_sessions_of_owner ON agent_sessions (owner, opened_at DESC, session_id DESC);
CREATE INDEX agent_sessions_of_partition ON agent_sessions (partition, session_id);
CREATE INDEX agent_sessions_of_parent ON agent_sessions (parent) WHERE parent IS NOT NULL;

COMMENT ON TABLE agent_sessions IS
    'one row for each session that was opened; kept as a tombstone when it is erased';
COMMENT ON COLUMN agent_sessions.fold_state IS
    'wakelog.v1.FoldState; the columns after it repeat parts of it for readers';
COMMENT ON COLUMN agent_sessions.erased IS
    'the session or one that it descends from is erased; never taken back';

CREATE TABLE session_lifetimes (
    session_id   uuid        NOT NULL,
    generation   bigint      NOT NULL CHECK (generation > 0),
    lifetime_id  bytea       NOT NULL CHECK (octet_length(lifetime_id) = 16),
    request_id   text        NOT NULL,
    base         bigint      NOT NULL CHECK (base >= 0),
    body_start   bigint      NOT NULL CHECK (body_start >= 0),
    writer_nonce bytea       CHECK (octet_length(writer_nonce) = 16),
    applied_seq  bigint      NOT NULL CHECK (applied_seq >= 0),
    status       integer     NOT NULL,
    bound_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, generation)
) WITH (
    -- The current lifetime's row is updated with every batch that has an entry of it.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02
);

CREATE UNIQUE INDEX session_lifetimes_by_id ON session_lifetimes (lifetime_id);
CREATE INDEX session_lifetimes_by_request ON session_lifetimes (session_id, request_id);
CREATE INDEX session_lifetimes_by_nonce ON session_lifetimes (session_id, writer_nonce);

COMMENT ON TABLE session_lifetimes IS
    'every lifetime that was bound; base and body_start are written once, by the bind';

CREATE TABLE agent_session_transcript_entries (
    session_id   uuid     NOT NULL,
    entry_seq    bigint   NOT NULL CHECK (entry_seq > 0),
    part         integer  NOT NULL CHECK (part >= 0),
    last         boolean  NOT NULL,
    checkpoint   boolean  NOT NULL,
    generation   bigint   NOT NULL,
    encoding     smallint NOT NULL,
    plain_length integer  NOT NULL CHECK (plain_length >= 0),
    part_digest  bytea    NOT NULL CHECK (octet_length(part_digest) = 16),
    body         bytea    NOT NULL,
    PRIMARY KEY (session_id, entry_seq, part)
) WITH (
    -- Rows are inserted and deleted, never updated: full pages. Deletes come in bulk, after a flush to the archive.
    fillfactor = 100,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_insert_scale_factor = 0.05
);

-- Bodies come compressed (or are not worth it), and readers ask for their length without reading them.
ALTER TABLE agent_session_transcript_entries ALTER COLUMN body SET STORAGE EXTERNAL;

COMMENT ON TABLE agent_session_transcript_entries IS
    'the parts of entries that are not archived yet; an entry is complete with the row that has last';
COMMENT ON COLUMN agent_session_transcript_entries.part_digest IS
    'first 16 bytes of SHA-256 of the part''s plain bytes';

CREATE TABLE session_subscribers (
    session_id uuid    NOT NULL,
    account    text    NOT NULL,
    role       integer NOT NULL,
    PRIMARY KEY (session_id, account)
);

CREATE INDEX session_subscribers_of_account ON session_subscribers (account, session_id);

COMMENT ON TABLE session_subscribers IS
    'accounts other than the owner that may see a session';
