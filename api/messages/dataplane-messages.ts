import type { MessageTable } from './types.ts'

/** Start errors and log lines (field `code`) of the data plane: PX40xx. */
export const dataplaneMessages = {
  PX4001: {
    title: 'setting of the data plane is not valid',
    cause: 'An environment variable or a field of section config has a value that cannot be used. The process does not start.',
    fix: 'Correct the setting; the message names it, its value and the allowed form.',
  },
  PX4002: {
    title: 'data plane cannot start',
    cause: 'An unexpected error during startup, for example an address of a management endpoint that is already in use.',
    fix: 'The message names the cause. Addresses are set by ADMIN_ADDR, STATS_ADDR and READINESS_ADDR.',
  },
  PX4003: {
    title: 'part of the config file cannot work',
    cause: 'A value of the config file is accepted, and cannot work. Requests that need it are rejected.',
    fix: 'Correct the value; field `problem` names file, line and path.',
  },
  PX4004: {
    title: 'config file is not usable after an edit',
    cause: 'An edit of the config file is invalid. The last valid version stays in force.',
    fix: 'Correct the file; field `error` names the problems. `proxyctl lint` checks a file before it is used.',
  },
  PX4005: {
    title: 'config stream is disconnected',
    cause: 'The connection to the operator ended or cannot be opened. The last config stays in force, and the connection is retried.',
    fix: 'Check that the operator runs and that network policies let its port 9978 through. Field `cause` names the error.',
  },
  PX4006: {
    title: 'part of the config was rejected',
    cause: 'A message of the operator is not valid for this version of the data plane. Its last valid version stays in force; the rest is applied.',
    fix: 'Use the same version for operator and data plane. The Gateway has an Event with the error.',
  },
  PX4007: {
    title: 'port cannot be opened',
    cause: 'The port of a listener, or PEER_PORT, is in use, or the process may not open it. It is retried.',
    fix: 'Use another port, or stop the process that uses it. Ports below 1024 need the capability NET_BIND_SERVICE.',
  },
  PX4008: {
    title: 'TLS handshakes on a listener fail',
    cause: 'The certificates of the listener are missing or not usable. Plaintext is never served instead.',
    fix: 'Correct the certificate; field `cause` names the problem.',
  },
  PX4009: {
    title: 'pattern of a route never matches',
    cause: 'A regular expression of a route cannot be compiled. The route does not match.',
    fix: 'Correct the pattern. RE2 has no lookaround and no backreferences.',
  },
  PX4010: {
    title: 'endpoint is ejected',
    cause: 'An endpoint failed its health condition, or its health checks fail, and receives no requests for some time, unless all endpoints are out.',
    fix: 'Check the endpoint. Thresholds, duration and checks are in section health of a policy.',
  },
  PX4011: {
    title: 'request or connection was not recorded',
    cause: 'An error in an access log, metric or trace. The request itself is not affected.',
    fix: 'Report the error with the log line; it is a defect of the program.',
  },
  PX4012: {
    title: 'admin request failed',
    cause: 'An unexpected error while a request to the admin endpoint was handled.',
    fix: 'Report the error with the log line; it is a defect of the program.',
  },
  PX4013: {
    title: 'worker ended',
    cause:
      'A worker thread of the data plane ended by an error, or was ended because it did not answer or could not use the config. Its connections are closed; other workers go on.',
    fix: 'Report the error with the log line; it is a defect of the program. The worker is replaced.',
  },
  PX4014: {
    title: 'worker does not answer',
    cause: 'The event loop of a worker thread has been blocked for 5 s. Field `stack` has the functions that it runs. It is replaced after 10 s.',
    fix: 'Report the stack; it is a defect of the program, unless the machine has too little CPU time.',
  },
  PX4015: {
    title: 'worker cannot use the config',
    cause: 'A worker thread failed to apply a version of the config that the others have. It is replaced.',
    fix: 'Report the error with the log line; it is a defect of the program.',
  },
  PX4016: {
    title: 'certificate of a listener expires soon or has expired',
    cause: 'A certificate that a listener offers ends within two weeks, or has ended. Clients reject an expired certificate.',
    fix: 'Renew the certificate; the Secret is read again without a restart.',
  },
  PX4017: {
    title: 'backend of a rule does not resolve',
    cause: 'A rule refers to a Service or ProxyBackend that the data plane does not have. Its share of the requests gets an error response.',
    fix: 'Correct the reference or create the object. The status of the route names the cause.',
  },
  PX4018: {
    title: 'message of a plugin',
    cause: 'A plugin logged a warning or an error, or a call of it failed. Fields `plugin` and `message` name the plugin and the problem.',
    fix: 'Correct the plugin, or its limits in `traffic.plugins`.',
  },
  PX4019: {
    title: 'plugin ended',
    cause: 'The thread of a plugin ended by an error, exceeded its memory limit, or was ended because it did not respond. It is started again.',
    fix: 'Correct the plugin, or raise `limits.memory`. Field `error` names the cause.',
  },
  PX4020: {
    title: 'plugin cannot be loaded',
    cause:
      'The source has an error, throws while it is loaded, or its config does not match its schema. The last version that was loaded stays, if there is one; otherwise `failureMode` decides.',
    fix: 'Correct the source or `config`. Field `error` names file, line and column.',
  },
  PX4021: {
    title: 'budget reached a percentage of a limit',
    cause:
      'The requests of one key have used a percentage of a limit that `traffic.budgets[].alertAt` names. Logged once for each key and window; a problem of the console until the window ends.',
    fix: 'Nothing, or raise the limit. Fields `policy`, `budget`, `limit` and `percent` name it; the metric `proxy_budget_alerts_total` counts it.',
  },
  PX4022: {
    title: 'requests are missing in the ledger',
    cause:
      'The file of the ledger cannot be written, for example because the disk is full. The requests of the failed batches are not recorded; traffic goes on.',
    fix: 'Field `error` names the cause. Make space, shorten `config.ledger.retention`, or mount a larger volume. The metric `proxy_ledger_rows_dropped_total` counts the requests.',
  },
  PX4023: {
    title: 'database of the ledger cannot be used',
    cause:
      'PostgreSQL or ClickHouse cannot be reached, rejects the user, or cannot create its tables. At most 20,000 requests wait in memory; further ones are not recorded. Traffic goes on.',
    fix: 'Field `error` names the cause, `path` the database. Rows that wait are stored when the database is back. Without the right to create tables, create them once with another user (docs/guide/ledger.md).',
  },
  PX4024: {
    title: 'no shares of budgets from the operator',
    cause:
      'A budget has `scope: Gateway`, and the quota service of the operator cannot be reached, ended the stream, has not responded for 3 s, or is that of a replica that does not lead. The last share is used until it expires after 30 s; then `onDisconnect` decides. Logged once until the connection is back.',
    fix: 'Field `cause` names the error. See that the operator runs and is of the same version or newer; the connection is retried every 2 s at most. A response that arrives late counts: give an operator that is slow more CPU. The metrics `proxy_budget_shares_connected` and `proxy_budget_disconnected_total` show it.',
  },
  PX4026: {
    title: 'counters of budgets cannot be saved',
    cause:
      'The file of `config.budgets.sqlite` cannot be written, for example because the disk is full. Budgets hold while this process runs; after a restart they continue with the last state of the file. Logged once until they are saved again.',
    fix: 'Field `error` names the cause. Make space, or mount a larger volume; writes are tried again each second.',
  },
  PX4029: {
    title: 'MCP tool is not as it was approved',
    cause:
      'A server lists a tool that has no pin, differs from its pin, has a name like that of a pinned tool, or a definition with hidden characters or instructions. Reported once for each version.',
    fix: 'Look at the tool with `proxyctl mcp diff`. Approve it with `proxyctl mcp approve`, or remove the server. Fields `mcp.target`, `gen_ai.tool.name` and `findings` name it.',
  },
  PX4035: {
    title: 'process of an MCP server ended',
    cause:
      'The program of `command` of an MCP target could not be started, or a process of it ended while its session was open. The session is over; the next one starts a process; if the process ended before it answered `initialize`, that of the same client does so after a delay of up to 30 s (`retryMs`).',
    fix: 'Field `error` has the reason; the standard error of the program is in the log. `command` has the absolute path of the program, or `env` has PATH. The program has no other environment than `env`.',
  },
  PX4036: {
    title: 'Redis cannot be used',
    cause:
      'The server of `config.redis` cannot be reached, its certificate is not valid for its name, or it rejects the user. Caches in Redis miss, and `onDisconnect` of budgets in Redis decides. Each cause is logged once, 10 at most, until it is back.',
    fix: 'Field `error` names the cause, `server` the address. The connection is tried again every 5 s at most. The metric `proxy_redis_commands_total{result="failed"}` counts the commands.',
  },
  PX4037: {
    title: 'budgets cannot be charged in Redis',
    cause:
      'A budget has `store: Redis`, and `config.redis` is not set, or the server did not respond within 250 ms, or rejected the script, for example because the user may not run scripts or its memory is full. `onDisconnect` of the budget decides. Each cause is logged once, 10 at most, until a budget is charged again.',
    fix: 'Field `error` names the cause. Set `config.redis`, or correct the server: the user needs `+@hash +@scripting +exists +pexpire` and the keys `~proxy:budget:*`, and `maxmemory-policy` is `noeviction` or one that keeps these keys. The metric `proxy_budget_disconnected_total` counts the requests.',
  },
  PX4038: {
    title: 'several MCP targets have one name',
    cause:
      'Targets of a ProxyBackend with `prefixMode: Never` offer tools or prompts of one name, or two tools have one name with `toolNames: Portable`. Calls could not be routed: lists do not have it, and calls of it fail. Logged once for each name, 100 names of a backend at most.',
    fix: 'Fields `backend`, `kind`, `name` and `targets` name them. Rename one with `tools.overrides[].rename`, leave it out with `tools.exclude`, or use `prefixMode: Conditional`.',
  },
  PX4039: {
    title: 'budgets cannot be charged in PostgreSQL',
    cause:
      'A budget has `store: Postgres`, and `config.postgres` is not set, or the database cannot be reached, did not respond within 250 ms, or rejected the statement, for example because the user may not create tables. `onDisconnect` of the budget decides. Each cause is logged once, 10 at most, until a budget is charged again.',
    fix: 'Field `error` names the cause. Set `config.postgres`, or correct the server: the user needs `CREATE` on its schema for the first start, and the isolation of its transactions is `read committed`. The metric `proxy_budget_disconnected_total` counts the requests.',
  },
  PX4040: {
    title: 'no assignments from a rate limit quota service',
    cause:
      'The service that `quotaService` of a budget names cannot be reached, ended the stream, or has not responded for 3 s. Assignments stay in force until they expire; then `onDisconnect` of the budget decides. Logged once until it responds.',
    fix: 'Field `cause` names the error, `service` and `domain` the stream. See that the service runs, knows the domain, and responds to reports; the connection is tried again every 5 s at most. The metrics `proxy_budget_quota_connected` and `proxy_budget_disconnected_total` show it.',
  },
  PX4044: {
    title: 'rollout of a model was aborted',
    cause: 'The condition `abortIf` of a rollout is true, or its `action` is Abort. The new target gets no more requests. On Kubernetes an Event says so.',
    fix: 'Field `message` has the numbers. Correct the new target, then change the targets or the steps: the rollout begins anew.',
  },
  PX4045: {
    title: 'state of rollouts is not kept',
    cause: 'The file of `config.rollouts.path` cannot be read or written. Rollouts go on while this process runs, and begin anew after a restart.',
    fix: 'Field `cause` names the error. Make the directory writable, or remove a damaged file.',
  },
  PX4041: {
    title: 'services of a gRPC server have no tools',
    cause:
      'The reflection service of a gRPC server names services whose descriptors, or imports of them, it does not have. The target has the tools of the other services. Logged again when other services are missing.',
    fix: 'Fields `backend`, `target` and `services` (10 of `missing`) name them, `error` has an answer of the server. Register their files with the reflection service of the server, or use a descriptor set (`grpc.configMapRef`).',
  },
} as const satisfies MessageTable

export type DataplaneCode = keyof typeof dataplaneMessages
