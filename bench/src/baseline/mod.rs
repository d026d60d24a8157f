//! What the engines do without Wakelog: the other half of each ratio.
//!
//! | module | baseline |
//! |---|---|
//! | [`producer`] | librdkafka with the settings of `libs/stream`, publishing the records that ingest makes |
//! | [`unnest`] | rows into a copy of the entries' table, in batches as large as the persister's |
//! | [`read`] | a streamed `SELECT` of the rows that a resume reads |
//! | [`objects`] | an S3 client without anything around it |
//! | [`compress`] | zstd and a PUT of the bytes that the archiver moves |
//! | [`spliced`] | `GET`s of the objects and a `SELECT` of the rows that a body is spliced of |
//! | [`plain`] | entries as rows and files without Wakelog, for their size |

pub(crate) mod compress;
pub(crate) mod objects;
pub(crate) mod plain;
pub(crate) mod producer;
pub(crate) mod read;
pub(crate) mod spliced;
pub(crate) mod unnest;
