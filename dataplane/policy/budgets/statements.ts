import type { Schema } from '../../runtime/value-store.ts'

/** Version of tables and functions. Functions are replaced by those of a later version, so that they must keep their arguments and results. */
const VERSION = 1
/** First key of the locks of counters; the second is a digest of the counter. */
const LOCKS = 1_886_547_811

/*
 * A counter in PostgreSQL is a row for each window (`period`): `amount` includes reservations; `origin` is the id of the reservation that
 * created the row, by which a loss of data is noticed; `alert` the highest alert. A reservation that is not settled is a row of another
 * table. Only what is not indexed changes, so that rows are updated in place.
 *
 * Each function locks all of its counters first, in the order of their digests, and reads after that: statements of a function see what
 * was committed before, unless the isolation is another one.
 */
const TABLES = `
CREATE TABLE IF NOT EXISTS proxy_budget_counters (
  counter text NOT NULL, period bigint NOT NULL, amount bigint NOT NULL, origin text NOT NULL,
  alert integer NOT NULL DEFAULT 0, expires timestamptz NOT NULL, PRIMARY KEY (counter, period)) WITH (fillfactor = 50);
CREATE INDEX IF NOT EXISTS proxy_budget_counters_expires ON proxy_budget_counters (expires);
CREATE TABLE IF NOT EXISTS proxy_budget_reservations (
  id text NOT NULL, counter text NOT NULL, period bigint NOT NULL, amount bigint NOT NULL,
  expires timestamptz NOT NULL, PRIMARY KEY (id, counter, period));
CREATE INDEX IF NOT EXISTS proxy_budget_reservations_expires ON proxy_budget_reservations (expires);
CREATE OR REPLACE FUNCTION proxy_budget_lock(p_counters text[]) RETURNS void LANGUAGE plpgsql AS $function$
DECLARE
  v_digest integer;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'transaction_isolation is "%": budgets need "read committed"', current_setting('transaction_isolation');
  END IF;
  FOR v_digest IN SELECT DISTINCT hashtext(c) FROM unnest(p_counters) AS c ORDER BY 1 LOOP
    PERFORM pg_advisory_xact_lock(${LOCKS}, v_digest);
  END LOOP;
END $function$;`

/**
 * Reserves for several requests, one after the other: for each from all limits or from none. Argument: a list of `{id, limits}` with
 * `{counter, period, amount, limit, part, forced, settled, stay}`. A row of the next window exists if the clock of another replica is
 * ahead: then that is the current window. A reservation that was given up before its statement ran has a row already, and is not made.
 * Returns for each request whether it is reserved, and for each limit: whether the window is the next one, whether it is admitted, the
 * amounts of both windows, `origin`.
 */
const RESERVE_FUNCTION = `
CREATE OR REPLACE FUNCTION proxy_budget_reserve(p_requests jsonb) RETURNS jsonb LANGUAGE plpgsql AS $function$
DECLARE
  v_request jsonb; v_limit jsonb; v_counter text; v_period bigint; v_part numeric; v_used bigint; v_before bigint; v_origin text;
  v_is_next boolean; v_admits boolean; v_reserved boolean; v_nth integer; v_periods bigint[]; v_rows jsonb; v_results jsonb := '[]';
BEGIN
  PERFORM proxy_budget_lock(ARRAY(SELECT l ->> 'counter' FROM jsonb_array_elements(p_requests) AS r, jsonb_array_elements(r -> 'limits') AS l));
  FOR v_request IN SELECT value FROM jsonb_array_elements(p_requests) LOOP
    v_rows := '[]';
    v_periods := '{}';
    v_reserved := NOT EXISTS (SELECT FROM proxy_budget_reservations AS r WHERE r.id = v_request ->> 'id');
    FOR v_limit IN SELECT value FROM jsonb_array_elements(v_request -> 'limits') LOOP
      v_counter := v_limit ->> 'counter';
      v_period := (v_limit ->> 'period')::bigint;
      v_part := (v_limit ->> 'part')::numeric;
      v_is_next := EXISTS (SELECT FROM proxy_budget_counters AS c WHERE c.counter = v_counter AND c.period = v_period + 1);
      IF v_is_next THEN
        v_period := v_period + 1;
        IF v_part >= 0 THEN v_part := 1; END IF;
      END IF;
      v_used := coalesce((SELECT c.amount FROM proxy_budget_counters AS c WHERE c.counter = v_counter AND c.period = v_period), 0);
      v_before := 0;
      IF v_part > 0 THEN
        v_before := coalesce((SELECT c.amount FROM proxy_budget_counters AS c WHERE c.counter = v_counter AND c.period = v_period - 1), 0);
      END IF;
      v_admits := (v_limit ->> 'limit')::numeric - v_used - v_before * greatest(v_part, 0) + 0.000001 >= 1;
      IF NOT v_admits AND NOT (v_limit ->> 'forced')::boolean THEN v_reserved := false; END IF;
      v_periods := v_periods || v_period;
      v_rows := v_rows || jsonb_build_array(jsonb_build_array(v_is_next, v_admits, v_used, v_before, ''));
    END LOOP;
    IF v_reserved THEN
      v_nth := 0;
      FOR v_limit IN SELECT value FROM jsonb_array_elements(v_request -> 'limits') LOOP
        v_nth := v_nth + 1;
        INSERT INTO proxy_budget_counters AS c (counter, period, amount, origin, expires)
          VALUES (v_limit ->> 'counter', v_periods[v_nth], (v_limit ->> 'amount')::bigint, v_request ->> 'id',
            now() + (v_limit ->> 'stay')::bigint * interval '1 millisecond')
          ON CONFLICT (counter, period) DO UPDATE SET amount = c.amount + excluded.amount RETURNING c.origin INTO v_origin;
        v_rows := jsonb_set(v_rows, ARRAY[(v_nth - 1)::text, '4'], to_jsonb(v_origin));
        IF (v_limit ->> 'settled')::boolean THEN
          INSERT INTO proxy_budget_reservations AS r (id, counter, period, amount, expires)
            VALUES (v_request ->> 'id', v_limit ->> 'counter', v_periods[v_nth], (v_limit ->> 'amount')::bigint,
              now() + (v_limit ->> 'stay')::bigint * interval '1 millisecond')
            ON CONFLICT (id, counter, period) DO UPDATE SET amount = r.amount + excluded.amount;
        END IF;
      END LOOP;
    END IF;
    v_results := v_results || jsonb_build_array(jsonb_build_array(v_reserved, v_rows));
  END LOOP;
  RETURN v_results;
END $function$;`

/**
 * Settles reservations. Argument: a list of `{counter, period, id, used, origin, stay}` (`StoreSettlement`). Without `origin` the statement
 * of the reservation may run later: a row of the amount 0 keeps it from being made.
 * Returns the amount of each counter.
 */
const SETTLE_FUNCTION = `
CREATE OR REPLACE FUNCTION proxy_budget_settle(p_settled jsonb) RETURNS jsonb LANGUAGE plpgsql AS $function$
DECLARE
  v_each jsonb; v_id text; v_counter text; v_period bigint; v_used bigint; v_taken bigint; v_change bigint; v_amount bigint;
  v_is_same boolean; v_results jsonb := '[]';
BEGIN
  PERFORM proxy_budget_lock(ARRAY(SELECT s ->> 'counter' FROM jsonb_array_elements(p_settled) AS s));
  FOR v_each IN SELECT value FROM jsonb_array_elements(p_settled) LOOP
    v_id := v_each ->> 'id';
    v_counter := v_each ->> 'counter';
    v_period := (v_each ->> 'period')::bigint;
    v_used := (v_each ->> 'used')::bigint;
    v_change := 0;
    v_is_same := EXISTS (SELECT FROM proxy_budget_counters AS c
      WHERE c.counter = v_counter AND c.period = v_period AND c.origin = v_each ->> 'origin');
    IF v_id = '' THEN
      IF v_is_same THEN v_change := v_used; END IF;
    ELSE
      DELETE FROM proxy_budget_reservations AS r WHERE r.id = v_id AND r.counter = v_counter AND r.period = v_period RETURNING r.amount INTO v_taken;
      IF FOUND THEN
        v_change := v_used - v_taken;
      ELSIF NOT v_is_same THEN
        v_change := v_used;
      END IF;
      IF v_each ->> 'origin' = '' THEN
        INSERT INTO proxy_budget_reservations (id, counter, period, amount, expires) VALUES (v_id, v_counter, v_period, 0, now() + interval '1 hour');
      END IF;
    END IF;
    IF v_change = 0 THEN
      v_amount := coalesce((SELECT c.amount FROM proxy_budget_counters AS c WHERE c.counter = v_counter AND c.period = v_period), 0);
    ELSE
      INSERT INTO proxy_budget_counters AS c (counter, period, amount, origin, expires)
        VALUES (v_counter, v_period, greatest(v_change, 0), v_id || '+', now() + (v_each ->> 'stay')::bigint * interval '1 millisecond')
        ON CONFLICT (counter, period) DO UPDATE SET amount = greatest(c.amount + v_change, 0) RETURNING c.amount INTO v_amount;
    END IF;
    v_results := v_results || to_jsonb(v_amount);
  END LOOP;
  RETURN v_results;
END $function$;`

/** Tables and functions of the counters. */
export const COUNTERS: Schema = {
  name: 'proxy_budgets',
  version: VERSION,
  source: `${TABLES}${RESERVE_FUNCTION}${SETTLE_FUNCTION}
CREATE TABLE IF NOT EXISTS proxy_budgets (version integer NOT NULL);
INSERT INTO proxy_budgets SELECT ${VERSION} WHERE NOT EXISTS (SELECT FROM proxy_budgets);`,
}

export const RESERVE_ROWS = 'SELECT proxy_budget_reserve($1::jsonb) AS result'
export const SETTLE_ROWS = 'SELECT proxy_budget_settle($1::jsonb) AS result'
/** Arguments: counter, window, percentage. Returns a row if the alert is claimed. */
export const CLAIM_ALERT_ROW = 'UPDATE proxy_budget_counters SET alert = $3 WHERE counter = $1 AND period = $2 AND alert < $3 RETURNING alert'

/** Rows that one statement of `DELETE_EXPIRED` deletes. */
export const EXPIRED_ROWS = 1000
const deleteExpired = (table: string, key: string): string => `DELETE FROM ${table} WHERE (${key}) IN
  (SELECT ${key} FROM ${table} WHERE expires < now() ORDER BY expires LIMIT ${EXPIRED_ROWS} FOR UPDATE SKIP LOCKED) RETURNING 1`
/** Delete the rows of windows that are over. */
export const DELETE_EXPIRED = [deleteExpired('proxy_budget_counters', 'counter, period'), deleteExpired('proxy_budget_reservations', 'id, counter, period')]
