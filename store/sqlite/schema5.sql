-- Version 5: a run has the time from which it is due, and the number of its leases in a row that expired without a record.

alter table journals add column next integer not null default 0;
alter table journals add column lapses integer not null default 0;

-- The due runs of an agent and a tenant, in order. A commit of a run changes none of these columns.
drop index journals_open;
create index journals_due on journals (agent, tenant, (case when next > until then next else until end), n) where state = 'open';
