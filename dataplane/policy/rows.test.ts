import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'

// The tests of the rows in the specification (traffic.md §14): rows of policies that need no other service. 28 and 66 are not implemented.
const root = join(import.meta.dirname, '../..')
const policy = 'dataplane/policy'
const rows: readonly (readonly [row: number, what: string, file: string, sentence: string])[] = [
  [
    20,
    'Gateway policy timeouts and retry, route policy retry',
    'dataplane/config/merge.test.ts',
    'fields merge, and a stronger field replaces the entire weaker one',
  ],
  [
    21,
    'limits of two kinds on two levels',
    'dataplane/config/merge.test.ts',
    'local and global limits, and the two sides of header modifiers, merge separately',
  ],
  [22, 'header filter over policy', `${policy}/index.test.ts`, 'a header filter replaces the same side of a policy only'],
  [23, 'Allow on two levels', 'dataplane/gateway/gateway.test.ts', 'Gateway Allow A, route Allow B, only B is true (row 23)'],
  [24, 'Allow in two phases', 'dataplane/gateway/gateway.test.ts', 'PreRouting Allow A, PostRouting Allow B, only B is true (row 24)'],
  [25, 'Deny that fails', `${policy}/authorization/index.test.ts`, 'a Deny that fails does not deny (row 25)'],
  [26, 'Require false, Allow true', `${policy}/authorization/index.test.ts`, 'Require false, Allow true (row 26)'],
  [27, 'only Deny rules', `${policy}/authorization/index.test.ts`, 'only Deny rules, none matches (row 27)'],
  [29, 'target missing', 'operator/translate/testdata/policy-missing-targets/out.yaml', 'StatusSummary'],
  [
    30,
    'one invalid expression beside a valid field',
    'operator/translate/translate.test.ts',
    'one bad field of two stays and fails where it stands, the other is in force',
  ],
  [31, 'rateLimit in PreRouting', 'e2e/suites/contract/rows/traffic.ts', "rateLimit: { local: [{ requests: 1, unit: 'Seconds' }] },"],
  [32, 'JWT Strict: no token, unknown kid, wrong aud, expired', `${policy}/jwt-authentication/index.test.ts`, 'expired two minutes ago'],
  [33, 'JWT Optional and Permissive, bad token', `${policy}/jwt-authentication/index.test.ts`, "['Permissive', 'a bad token', [bearer('bad')], 200, false]"],
  [34, 'valid token', `${policy}/jwt-authentication/index.test.ts`, 'is removed, and its claims are passed on with the token as a secret'],
  [35, 'inline key set garbage', 'operator/translate/testdata/policy-jwks/out.yaml', 'is not JSON; all its tokens are rejected'],
  [36, 'wrong password', `${policy}/basic-authentication/index.test.ts`, 'a wrong password'],
  [37, 'formats of hashes', `${policy}/basic-authentication/hashes.e2e.ts`, 'verifies the hashes of htpasswd %s %s %s'],
  [38, 'API key raw and as JSON, by group', `${policy}/authorization/index.test.ts`, 'metadata of an API key (row 38)'],
  [39, 'keyHash, malformed entries', `${policy}/api-key-authentication/index.test.ts`, 'hashed:'],
  [40, 'JWT and API key, one given', `${policy}/credentials.test.ts`, 'only a token (row 40)'],
  [
    41,
    'preflight of an allowed origin, JWT-protected',
    'dataplane/gateway/gateway.test.ts',
    'a request that one authentication rejects costs no other and no budget, and has CORS headers',
  ],
  [42, 'preflight of a foreign origin', `${policy}/cors/index.test.ts`, 'a preflight of a foreign origin gets no CORS headers'],
  [43, '401 with Allow-Origin', 'e2e/suites/browser/origins.e2e.ts', 'a page can read an error response (row 43)'],
  [44, 'origins with stars and ports', `${policy}/cors/index.test.ts`, 'https://a.com:8443'],
  [45, 'CSRF', `${policy}/csrf/index.test.ts`, 'cross-site is rejected'],
  [46, 'local limit with burst', `${policy}/rate-limit/index.test.ts`, 'admits the rate plus burst and sets x-ratelimit headers on every response'],
  [
    47,
    'two routes share a Gateway budget',
    'dataplane/gateway/gateway.test.ts',
    'one budget for all routes of a target, whatever else changes; a new one with the policy',
  ],
  [48, 'token limit', `${policy}/rate-limit/tokens.test.ts`, '(row 48)'],
  [58, 'failing header', `${policy}/transformation/index.test.ts`, 'a failing set removes the header (row 58)'],
  [59, 'failing body', `${policy}/transformation/index.test.ts`, 'a failed expression makes an empty body (row 59)'],
  [60, ':path and :status', `${policy}/transformation/index.test.ts`, 'the status can be set (row 60)'],
  [61, 'retries are numbered', 'dataplane/backend/forward/forward.test.ts', 'numbers retries in x-retry-attempt and sends the body again'],
  [62, 'retry of a long body', 'dataplane/backend/forward/forward.test.ts', 'does not retry a body of known length above 64 KiB'],
  [63, 'request timeout', 'dataplane/backend/forward/forward.test.ts', 'ends at the request timeout, which covers all attempts and the backoff'],
  [64, 'direct response behind JWT', `${policy}/failures.test.ts`, 'an earlier authentication rejects the request'],
  [65, 'hostRewrite absent', 'dataplane/backend/forward/forward.test.ts', 'the host of a ProxyBackend'],
  [67, 'a body past the buffer', `${policy}/authorization/index.test.ts`, 'a body of 3 MiB fails the expression (row 67)'],
  [71, 'WebSocket through JWT', 'e2e/examples/jwt-authentication/expect.ts', '(row 71)'],
  [75, 'eviction', 'dataplane/net/upstream/balancer/health.test.ts', 'row 75'],
]

describe('traffic.md §14', () => {
  test.each(rows)('row %d, %s, is in %s: %s', (_, __, file, sentence) => {
    const path = join(root, file)
    expect(existsSync(path) && readFileSync(path, 'utf8').includes(sentence)).toBe(true)
  })
})
