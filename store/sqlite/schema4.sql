-- Version 4: the head of a run has a seal, and a record from outside a signature (store.Ledger).

alter table journals add column seal text not null default '';
alter table records add column signature text not null default '';
