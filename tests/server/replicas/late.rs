//! A server that renews its leases too late.

use sqlx::{Connection as _, PgConnection};

use super::{
    SHORT_LEASE, ask, ask_detached,
    client::{numbered, spoken},
    postgres::Postgres,
    replicas_on, said,
};

/// Every lease that is renewed has already ended, as if the renewal had taken longer than the lease.
const RENEW_TOO_LATE: &str = "
    CREATE FUNCTION end_lease() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN IF NEW.lease_until IS NOT NULL THEN NEW.lease_until := 1; END IF; RETURN NEW; END';
    CREATE TRIGGER too_late BEFORE UPDATE ON agui_threads FOR EACH ROW EXECUTE FUNCTION end_lease();";

#[tokio::test]
async fn a_server_does_not_close_its_own_run_as_lost() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("late").await;
    let [server] = replicas_on(&url, SHORT_LEASE);
    let mut connection = PgConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(RENEW_TOO_LATE).execute(&mut connection).await.unwrap();
    // Longer than two renewals.
    let events = server.run(&ask_detached("r", "count to 40")).await.rest().await;
    assert_eq!(events.last().unwrap().event["outcome"]["type"], "success", "{:?}", events.last());
    let log = server.follow("r", 0).await.rest().await;
    assert_eq!(numbered(&log, 1).event["outcome"]["type"], "success");
    let thread = server.thread().await;
    assert_eq!(thread["runs"][0]["status"], "finished");
    assert_eq!(said(&thread), ["user: count to 40", &format!("assistant: {}", spoken(&log))]);
    assert_eq!(
        server.run(&ask("next", "hello")).await.rest().await.last().unwrap().name(),
        "RUN_FINISHED"
    );
}
