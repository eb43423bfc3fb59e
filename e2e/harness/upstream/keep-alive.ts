/**
 * keepAliveTimeout of servers in tests, in milliseconds. A server that closes an idle connection just when a request arrives makes a non-idempotent request
 * fail, so test servers never do.
 */
export const KEEP_ALIVE_TIMEOUT_MS = 3_600_000
