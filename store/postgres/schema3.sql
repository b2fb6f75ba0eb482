-- Version 3: a run has the time from which it is due, and the number of its leases in a row that expired without a record.

alter table journals add column next bigint not null default 0;
alter table journals add column lapses bigint not null default 0;

-- The due runs of an agent and a tenant, in order. A commit of a run changes none of these columns, and pages have room for its new row, so that
-- no index is changed (HOT).
drop index journals_open;
create index journals_due on journals (agent, tenant, (case when next > until then next else until end), n) where state = 'open';
alter table journals set (fillfactor = 70);
