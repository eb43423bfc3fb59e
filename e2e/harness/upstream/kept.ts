/**
 * keepAliveTimeout of servers in tests. A connection that is closed just as a request is sent on it fails what is not safe to repeat: these are not the
 * ones to close.
 */
export const KEPT_MS = 3_600_000
