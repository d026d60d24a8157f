//! Sessions as such: open, list, describe, erase.

use tonic::{Request, Response, Status};
use wakelog_model::SessionId;
use wakelog_proto::v1::{
    DescribeSessionRequest, DescribeSessionResponse, EraseSessionRequest, EraseSessionResponse,
    ListSessionsRequest, ListSessionsResponse, OpenSessionRequest, OpenSessionResponse,
};

use super::Sessions;
use crate::open::NewSession;
use crate::{Error, validate};

impl Sessions {
    pub(super) async fn open(
        &self,
        request: Request<OpenSessionRequest>,
    ) -> Result<Response<OpenSessionResponse>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .unary(async move |core, abandoned| {
                let new = new_session(account, request)?;
                let row = core.open(&new, &abandoned).await?;
                Ok(OpenSessionResponse {
                    session_id: row.session.to_string(),
                    partition: row.partition,
                })
            })
            .await
    }

    pub(super) async fn list(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .unary(async move |core, _| core.list(&account, request).await)
            .await
    }

    pub(super) async fn describe(
        &self,
        request: Request<DescribeSessionRequest>,
    ) -> Result<Response<DescribeSessionResponse>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .unary(async move |core, _| {
                core.describe(validate::session_id(&request.session_id)?, &account)
                    .await
            })
            .await
    }

    pub(super) async fn erase(
        &self,
        request: Request<EraseSessionRequest>,
    ) -> Result<Response<EraseSessionResponse>, Status> {
        let (account, request) = self.authenticate(request)?;
        self.core
            .unary(async move |core, abandoned| {
                core.erase(validate::session_id(&request.session_id)?, &account, &abandoned)
                    .await?;
                Ok(EraseSessionResponse {})
            })
            .await
    }
}

fn new_session(owner: String, request: OpenSessionRequest) -> Result<NewSession, Error> {
    let request_id = validate::request_id(&request.request_id)?;
    validate::labels(&request.labels)?;
    let parent = validate::parent_id(&request.parent_session_id)?;
    validate::subpath(&request.subpath, parent.is_some())?;
    Ok(NewSession {
        session: SessionId::for_request(&owner, &request_id),
        owner,
        labels: request.labels,
        parent,
        subpath: request.subpath,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(request_id: &str) -> OpenSessionRequest {
        OpenSessionRequest {
            request_id: request_id.to_owned(),
            ..OpenSessionRequest::default()
        }
    }

    fn session_of(owner: &str, request_id: &str) -> SessionId {
        new_session(owner.to_owned(), open(request_id)).unwrap().session
    }

    #[test]
    fn the_same_request_names_the_same_session_and_no_other_account_does() {
        assert_eq!(session_of("ann", "one"), session_of("ann", "one"));
        assert_ne!(session_of("ann", "one"), session_of("ann", "two"));
        assert_ne!(session_of("ann", "one"), session_of("bob", "one"));
    }

    #[test]
    fn a_request_without_an_id_names_a_new_session_each_time() {
        assert_ne!(session_of("ann", ""), session_of("ann", ""));
    }

    #[test]
    fn what_is_malformed_is_refused_before_anything_happens() {
        let cases: [fn(&mut OpenSessionRequest); 5] = [
            |request| request.request_id = "r".repeat(129),
            |request| {
                request.labels.insert(String::new(), String::new());
            },
            |request| request.parent_session_id = "not an id".to_owned(),
            |request| request.subpath = "orphan".to_owned(),
            |request| request.request_id = "\0".to_owned(),
        ];
        for (at, change) in cases.into_iter().enumerate() {
            let mut request = open("one");
            change(&mut request);
            let error = new_session("ann".to_owned(), request).unwrap_err();
            assert_eq!(error.into_status().code(), tonic::Code::InvalidArgument, "{at}");
        }
    }
}
