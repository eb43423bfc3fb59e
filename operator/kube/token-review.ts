import type { Metadata } from '@grpc/grpc-js'
import { XDS_AUDIENCE } from '#api/names.ts'
import type { Authenticate } from '../serve/session.ts'
import type { KubeConnection } from './connection.ts'

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean
    readonly audiences?: readonly string[]
    readonly user?: { readonly username?: string }
  }
}

/** Longest token that is sent for review; tokens of Kubernetes are below 2 KiB. */
const MAX_TOKEN = 16_384

export interface ReviewCounts {
  requests: number
  successes: number
  failures: number
}

/**
 * Authenticates a data plane by a TokenReview of the API server (operator.md §6.2). It gets the config of the Gateway whose ServiceAccount it runs
 * under, and of no other. Whatever is unclear is a refusal; the token itself is in no message.
 */
export function createTokenAuthentication(connection: KubeConnection, counts: ReviewCounts): Authenticate {
  const refuse = (message: string): { isAllowed: false; message: string } => {
    counts.failures += 1
    return { isAllowed: false, message }
  }
  return async (metadata, role) => {
    counts.requests += 1
    const token = readToken(metadata)
    if (token === undefined) return refuse('authentication failed: send `authorization: Bearer <service account token>`')
    if (role === undefined) return refuse('authentication failed: node metadata has no role')
    let review: TokenReview
    try {
      review = await connection.request<TokenReview>('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
        body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token, audiences: [XDS_AUDIENCE] } },
        timeoutMs: 5_000,
      })
    } catch {
      return refuse('authentication failed: the token cannot be reviewed now')
    }
    const { authenticated = false, audiences = [], user } = review.status ?? {}
    if (!authenticated || !audiences.includes(XDS_AUDIENCE)) return refuse(`authentication failed: the token is not valid for audience ${XDS_AUDIENCE}`)
    const account = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user?.username ?? '')
    if (!account) return refuse('authentication failed: the token is not of a service account')
    const own = `${account[1]}~${account[2]}`
    if (own !== role) return refuse(`requested gateway ${role} but authenticated as ${own}`)
    counts.successes += 1
    return { isAllowed: true }
  }
}

function readToken(metadata: Metadata): string | undefined {
  const values = metadata.get('authorization')
  const [value] = values
  if (values.length !== 1 || typeof value !== 'string') return undefined
  const token = /^Bearer ([\w.~+/=-]+)$/i.exec(value)?.[1]
  return token === undefined || token.length > MAX_TOKEN ? undefined : token
}
