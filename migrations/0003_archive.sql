-- The archive: which object holds which entries, what is on its way there, and from which states the hot tail can be
-- built again.
--
-- Written by the archiver alone. No foreign keys, as in the hot tail: the transactions lock the session's row where
-- they need it, and a manifest row stays after its session was erased until the objects are gone.

CREATE TABLE agent_session_archive_segments (
    session_id    uuid        NOT NULL,
    object_key    text        COLLATE "C" NOT NULL,
    min_entry_seq bigint      NOT NULL CHECK (min_entry_seq > 0),
    max_entry_seq bigint      NOT NULL CHECK (max_entry_seq >= min_entry_seq),
    kind          text        NOT NULL CHECK (kind IN ('superseded', 'safety_valve', 'session_end', 'retention')),
    entries       bigint      NOT NULL CHECK (entries > 0),
    plain_bytes   bigint      NOT NULL CHECK (plain_bytes >= 0),
    object_bytes  bigint      NOT NULL CHECK (object_bytes > 0),
    object_digest bytea       NOT NULL CHECK (octet_length(object_digest) = 32),
    archived_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, object_key)
);

-- Which segments overlap a range. A resume body is at the end of a session: led by the last entry, the scan starts
-- behind the history, however long that is.
CREATE INDEX agent_session_archive_segments_by_range
    ON agent_session_archive_segments (session_id, max_entry_seq, min_entry_seq);
-- What the next checkpoint re-marks: the few rows that the last one has not.
CREATE INDEX agent_session_archive_segments_of_valve
    ON agent_session_archive_segments (session_id, max_entry_seq) WHERE kind = 'safety_valve';
-- Whether an object that a listing found is known.
CREATE INDEX agent_session_archive_segments_by_key ON agent_session_archive_segments (object_key);

COMMENT ON TABLE agent_session_archive_segments IS
    'the manifest: a row says that a verified object holds every entry of the range; readers ask the hot tail first';
COMMENT ON COLUMN agent_session_archive_segments.kind IS
    'why it was archived. superseded and safety_valve: the rows were pruned in the transaction that wrote this one;
session_end and retention: a copy, nothing was pruned';

CREATE TABLE archive_staged_objects (
    object_key   text        COLLATE "C" PRIMARY KEY,
    session_id   uuid        NOT NULL,
    staging_id   bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    staged_at    timestamptz NOT NULL DEFAULT now(),
    condemned_at timestamptz
) WITH (
    -- Short-lived rows: clean up by count.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

CREATE INDEX archive_staged_objects_of_session ON archive_staged_objects (session_id);

COMMENT ON TABLE archive_staged_objects IS
    'objects that may exist and are in no manifest: a row precedes each PUT, the flush consumes it';
COMMENT ON COLUMN archive_staged_objects.staging_id IS
    'names the row over its life; a flush consumes the very row that its PUT was staged by, so that an object which was
deleted since is never recorded';
COMMENT ON COLUMN archive_staged_objects.condemned_at IS
    'the object is being deleted; until the row is gone nobody may stage or record it';

CREATE TABLE session_archive_snapshots (
    session_id     uuid        NOT NULL,
    incarnation    integer     NOT NULL CHECK (incarnation > 0),
    next_offset    bigint      NOT NULL CHECK (next_offset >= 0),
    last_entry_seq bigint      NOT NULL CHECK (last_entry_seq >= 0),
    row_version    text        NOT NULL,
    taken_at       timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (session_id, incarnation, next_offset)
);

COMMENT ON TABLE session_archive_snapshots IS
    'states of sessions in the object store: what the fold said of the session before next_offset';
COMMENT ON COLUMN session_archive_snapshots.row_version IS
    'xmin of the row in agent_sessions that it was made of; every applied record changes that row';

CREATE TABLE session_archive_erasures (
    session_id    uuid        PRIMARY KEY,
    sweeps        integer     NOT NULL CHECK (sweeps > 0),
    last_swept_at timestamptz NOT NULL
);

COMMENT ON TABLE session_archive_erasures IS
    'erased sessions whose objects were deleted, how often and when; what was on its way then comes later and is swept
again';

CREATE TABLE topic_incarnations (
    topic       text    PRIMARY KEY,
    incarnation integer NOT NULL CHECK (incarnation > 0)
);

COMMENT ON TABLE topic_incarnations IS
    'how often a topic was made: offsets of one incarnation say nothing about another one; no row means 1';

CREATE TABLE partition_coverage (
    topic          text        NOT NULL,
    partition      integer     NOT NULL CHECK (partition >= 0),
    incarnation    integer     NOT NULL CHECK (incarnation > 0),
    covered_offset bigint      NOT NULL CHECK (covered_offset >= 0),
    covered_at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, partition)
);

COMMENT ON TABLE partition_coverage IS
    'records below the covered offset are not needed to build the hot tail again: each session that has one has a state
at or after it, or is swept';

-- A session is erased once: the index costs nothing until then.
CREATE INDEX agent_sessions_erased ON agent_sessions (partition, session_id) WHERE erased;
