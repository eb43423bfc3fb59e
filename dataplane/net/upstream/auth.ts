import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { readHeldBody } from '../../request/exchange/held.ts'
import { BodyTooLargeError, BufferBody } from '../../http/body.ts'
import type { HeaderList } from '../../http/headers.ts'
import { hostOf, type RequestHead } from '../../http/message.ts'
import { variables } from '../../request/exchange/variables.ts'
import {
  CREDENTIAL_TIMEOUT_MS,
  CredentialError,
  cloudCredentials,
  signAws,
  type AwsCredentials,
  type AzureIdentity,
  type GoogleTokenKind,
} from './cloud/index.ts'

/** Credentials of requests to a destination (part 2, Backend authentication). */
export type UpstreamAuth =
  | { readonly kind: 'bearer'; readonly token: string }
  /** The client's own credential, which its authentication policy removed. */
  | { readonly kind: 'passthrough' }
  /** The credential is unavailable: no request is sent. `reason` may reach the client and contains no secret; `cause` is for logs. */
  | { readonly kind: 'broken'; readonly reason: string; readonly cause?: string }
  /** Requests are signed for AWS; undefined: with the credentials of the process. */
  | { readonly kind: 'aws'; readonly credentials: AwsCredentials | undefined }
  | { readonly kind: 'azure'; readonly identity: AzureIdentity }
  | { readonly kind: 'google'; readonly token: GoogleTokenKind }
  | { readonly kind: 'oauth'; readonly source: TokenSource }

/** Access tokens of an OAuth authorization server (traffic.md §13.1). */
export interface TokenSource {
  /** A token for the user of the exchange. Rejects with a ProxyError: BACKEND_SUBJECT, BACKEND_TOKEN, REQUEST_TIMEOUT. */
  tokenFor(exchange: Exchange | undefined): Promise<string>
}

/** Properties of a request that only the caller knows. */
export interface AuthHints {
  /** Scope of the signature; default: derived from an AWS host name. */
  readonly signing?: { readonly region: string; readonly service: string } | undefined
  /** Scope of an Azure token. */
  readonly scope?: string | undefined
  /** The exchange that the request is made for. A body buffered for a signature counts for it, and OAuth tokens are those of its user. */
  readonly exchange?: Exchange | undefined
}

/** The error of requests whose credential is unavailable. */
export const brokenAuth = ({ reason, cause }: Extract<UpstreamAuth, { kind: 'broken' }>): ProxyError =>
  new ProxyError('BACKEND_AUTH', { detail: reason, ...(cause !== undefined && { cause: new Error(cause) }) })

const AZURE_SCOPE = 'https://management.azure.com/.default'
/** Limit of a body that must be buffered for a signature. */
const SIGNED_BODY_LIMIT_BYTES = 2 * 1024 * 1024

/**
 * Writes credentials that are known already into the headers of a request; `exchange` is the exchange that it is made for, if any. Others
 * are added by `fetchCredentials`, and by `signRequest` once the request is final.
 */
export function authenticate(headers: HeaderList, auth: UpstreamAuth, exchange: Exchange | undefined): void {
  const token = auth.kind === 'bearer' ? auth.token : auth.kind === 'passthrough' && exchange !== undefined ? validatedCredential(exchange) : undefined
  // Replace all lines: it is undefined which of two the upstream would use.
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
}

/** Whether the credentials need `fetchCredentials` or `signRequest`. */
export function isFetched(auth: UpstreamAuth | undefined): boolean {
  return auth?.kind === 'aws' || auth?.kind === 'azure' || auth?.kind === 'google' || auth?.kind === 'oauth'
}

/** Writes a token of a cloud or of an authorization server into the headers; does nothing for other credentials. Rejects with a ProxyError. */
export async function fetchCredentials(headers: HeaderList, auth: UpstreamAuth, { scope = AZURE_SCOPE, exchange }: AuthHints = {}): Promise<void> {
  if (auth.kind === 'oauth') headers.set('authorization', `Bearer ${await auth.source.tokenFor(exchange)}`)
  else if (auth.kind === 'azure') headers.set('authorization', `Bearer ${await within(cloudCredentials.azure(auth.identity, scope))}`)
  else if (auth.kind === 'google') headers.set('authorization', `Bearer ${await within(cloudCredentials.google(auth.token))}`)
}

/** Signs the final request if its destination requires it, and buffers its body for that. Rejects with a ProxyError. */
export async function signRequest(request: RequestHead, auth: UpstreamAuth, { signing, exchange }: AuthHints = {}): Promise<void> {
  if (auth.kind !== 'aws') return
  const credentials = auth.credentials ?? (await within(cloudCredentials.aws()))
  const { region, service } = signing ?? signingOf(hostOf(request.authority))
  const body = await bufferBody(request, exchange)
  await signAws(request, body, { credentials, region, service })
}

/** Applies fetched credentials and signatures to a final request. */
export async function authorizeRequest(request: RequestHead, auth: UpstreamAuth, hints?: AuthHints): Promise<void> {
  await fetchCredentials(request.headers, auth, hints)
  await signRequest(request, auth, hints)
}

async function bufferBody(request: RequestHead, exchange: Exchange | undefined): Promise<Buffer> {
  if (request.body instanceof BufferBody) return request.body.bytes
  const { bytes } = await readHeldBody(exchange, request.body, SIGNED_BODY_LIMIT_BYTES).catch((error: unknown) => {
    if (error instanceof ProxyError) throw error
    throw error instanceof BodyTooLargeError
      ? new ProxyError('BODY_TOO_LARGE', { cause: error })
      : new ProxyError('PROCESSING_FAILED', { detail: 'the request body broke off', cause: error })
  })
  if (request.body !== undefined) request.body = new BufferBody(bytes)
  return bytes
}

const regionPattern = /^[a-z]{2}(?:-[a-z]+)+-\d+$/
/** Signing names of services that differ from their host names. */
const signingNames: Readonly<Record<string, string>> = { 'bedrock-runtime': 'bedrock', 'bedrock-agent-runtime': 'bedrock', 'lambda-url': 'lambda' }

/** Derives region and service from a host such as `<service>.<region>.amazonaws.com`. */
function signingOf(host: string): { region: string; service: string } {
  const labels = host.toLowerCase().split('.')
  const at = labels.findIndex((label) => regionPattern.test(label))
  const service = labels[at - 1]
  if (at < 1 || service === undefined || !/(?:amazonaws\.com(?:\.cn)?|\.on\.aws|\.api\.aws)$/.test(host.toLowerCase()))
    throw new ProxyError('BACKEND_AUTH', {
      detail: 'the host does not name the AWS service and region to sign for: use <service>.<region>.amazonaws.com',
      cause: new Error(`the host is ${host}`),
    })
  return { region: labels[at] ?? '', service: signingNames[service] ?? service }
}

/** Waits for credentials, up to CREDENTIAL_TIMEOUT_MS. */
async function within<T>(wanted: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new CredentialError(`no credentials within ${CREDENTIAL_TIMEOUT_MS} ms`)), CREDENTIAL_TIMEOUT_MS)
  })
  try {
    return await Promise.race([wanted, late])
  } catch (error) {
    throw new ProxyError('BACKEND_AUTH', { detail: error instanceof CredentialError ? error.message : 'no credentials', cause: error })
  } finally {
    clearTimeout(timer)
  }
}

/** The credential that a JWT or API key policy accepted and removed from the request. */
function validatedCredential(exchange: Exchange): string | undefined {
  const credential = variables.jwt.get(exchange)?.rawToken ?? variables.apiKey.get(exchange)?.key
  return credential?.reveal()
}
