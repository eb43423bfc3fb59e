import { createSign } from 'node:crypto'
import { fetchJson, fetchText, CredentialError, parseObject, textOf } from './fetch.ts'
import { expiryIn, readCredentialFile, setting, type CloudContext, type Token } from './source.ts'

/** Kind of token: an access token for Google APIs, or an id token for one audience. */
export type GoogleTokenKind = { readonly type: 'AccessToken' } | { readonly type: 'IdToken'; readonly audience: string }

type Document = Readonly<Record<string, unknown>>

const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const FILE = 'the file of GOOGLE_APPLICATION_CREDENTIALS'
const TOKENS = "Google's token endpoint"
const METADATA = 'the metadata server'
const ID_TOKEN_MS = 3600_000

/** Application default credentials: the file that the environment names, else the metadata server (GKE workload identity, GCE, Cloud Run). */
export async function findGoogleToken(kind: GoogleTokenKind, context: CloudContext): Promise<Token> {
  const file = setting(context.env, 'GOOGLE_APPLICATION_CREDENTIALS')
  if (file === undefined) return requestFromMetadata(kind, context)
  const document = parseObject(FILE, await readCredentialFile(FILE, file))
  switch (document['type']) {
    case 'service_account':
      return requestAsServiceAccount(document, kind, context)
    case 'external_account':
      return requestAsExternalAccount(document, kind, context)
    case 'authorized_user':
      return requestAsUser(document, kind, context)
    default:
      throw new CredentialError(`${FILE} has an unknown type: use service_account, external_account or authorized_user`)
  }
}

async function requestFromMetadata(kind: GoogleTokenKind, { env, nowMs }: CloudContext): Promise<Token> {
  const base = `http://${setting(env, 'GCE_METADATA_HOST') ?? 'metadata.google.internal'}/computeMetadata/v1/instance/service-accounts/default`
  const request = { headers: { 'metadata-flavor': 'Google' }, timeoutMs: 3000 }
  if (kind.type === 'IdToken')
    return idToken(METADATA, await fetchText(METADATA, `${base}/identity?audience=${encodeURIComponent(kind.audience)}&format=full`, request), nowMs())
  return accessToken(METADATA, await fetchJson(METADATA, `${base}/token?scopes=${encodeURIComponent(SCOPE)}`, request), nowMs())
}

/** Key file: exchanges an assertion that is signed with the key. */
async function requestAsServiceAccount(document: Document, kind: GoogleTokenKind, { nowMs }: CloudContext): Promise<Token> {
  const uri = textOf(FILE, document, 'token_uri')
  const now = Math.floor(nowMs() / 1000)
  const claim = kind.type === 'IdToken' ? { target_audience: kind.audience } : { scope: SCOPE }
  const assertion = sign(
    { iss: textOf(FILE, document, 'client_email'), aud: uri, iat: now, exp: now + 3600, ...claim },
    textOf(FILE, document, 'private_key'),
    document['private_key_id'],
  )
  const body = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
  const answer = await fetchJson(TOKENS, uri, { method: 'POST', body })
  return kind.type === 'IdToken' ? idToken(TOKENS, textOf(TOKENS, answer, 'id_token'), nowMs()) : accessToken(TOKENS, answer, nowMs())
}

function sign(claims: object, privateKey: string, keyId: unknown): string {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const unsigned = `${encode({ alg: 'RS256', typ: 'JWT', ...(typeof keyId === 'string' && { kid: keyId }) })}.${encode(claims)}`
  try {
    return `${unsigned}.${createSign('RSA-SHA256').update(unsigned).sign(privateKey, 'base64url')}`
  } catch {
    throw new CredentialError(`the private_key of ${FILE} is no RSA key`)
  }
}

/** Workload identity federation: exchanges the platform's token, then, if configured, impersonates a service account. */
async function requestAsExternalAccount(document: Document, kind: GoogleTokenKind, { nowMs }: CloudContext): Promise<Token> {
  const impersonation = document['service_account_impersonation_url']
  const body = new URLSearchParams({
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    audience: textOf(FILE, document, 'audience'),
    scope: SCOPE,
    requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    subject_token_type: textOf(FILE, document, 'subject_token_type'),
    subject_token: await readSubjectToken(document),
  })
  const exchanged = accessToken(TOKENS, await fetchJson(TOKENS, textOf(FILE, document, 'token_url'), { method: 'POST', body }), nowMs())
  if (typeof impersonation !== 'string') {
    if (kind.type === 'AccessToken') return exchanged
    throw new CredentialError(`${FILE} has no service_account_impersonation_url: an id token needs one`)
  }
  const what = "Google's credentials service"
  const ask = (url: string, request: object): Promise<Document> =>
    fetchJson(what, url, {
      method: 'POST',
      headers: { authorization: `Bearer ${exchanged.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
  if (kind.type === 'IdToken') {
    const answer = await ask(impersonation.replace(/:generateAccessToken$/, ':generateIdToken'), { audience: kind.audience, includeEmail: true })
    return idToken(what, textOf(what, answer, 'token'), nowMs())
  }
  const answer = await ask(impersonation, { scope: [SCOPE], lifetime: '3600s' })
  return { token: textOf(what, answer, 'accessToken'), expiresAtMs: Date.parse(textOf(what, answer, 'expireTime')) || undefined }
}

async function readSubjectToken(document: Document): Promise<string> {
  const source = document['credential_source'] as Document | undefined
  const file = source?.['file']
  const url = source?.['url']
  const what = 'the subject token'
  if (typeof file !== 'string' && typeof url !== 'string') throw new CredentialError(`credential_source of ${FILE} has neither file nor url`)
  const text = typeof file === 'string' ? await readCredentialFile(what, file) : await fetchText(what, String(url), { headers: headersOf(source) })
  const format = source?.['format'] as Document | undefined
  if (format?.['type'] !== 'json') return text
  return textOf(what, parseObject(what, text), textOf(FILE, format, 'subject_token_field_name'))
}

function headersOf(source: Document | undefined): Record<string, string> {
  const headers = source?.['headers']
  return typeof headers === 'object' && headers !== null ? Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])) : {}
}

async function requestAsUser(document: Document, kind: GoogleTokenKind, { nowMs }: CloudContext): Promise<Token> {
  if (kind.type === 'IdToken') throw new CredentialError(`${FILE} is of a user: an id token needs a service account`)
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: textOf(FILE, document, 'client_id'),
    client_secret: textOf(FILE, document, 'client_secret'),
    refresh_token: textOf(FILE, document, 'refresh_token'),
  })
  const uri = typeof document['token_uri'] === 'string' ? document['token_uri'] : 'https://oauth2.googleapis.com/token'
  return accessToken(TOKENS, await fetchJson(TOKENS, uri, { method: 'POST', body }), nowMs())
}

const accessToken = (what: string, answer: Document, nowMs: number): Token => ({
  token: textOf(what, answer, 'access_token'),
  expiresAtMs: expiryIn(answer['expires_in'], nowMs),
})

/** Expires at its `exp`, or after an hour if that cannot be read. */
function idToken(what: string, text: string, nowMs: number): Token {
  const token = text.trim()
  if (token === '') throw new CredentialError(`${what} gave no id token`)
  const claims = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
  const seconds = Number(/"exp"\s*:\s*(\d+)/.exec(claims)?.[1])
  return { token, expiresAtMs: Number.isFinite(seconds) ? seconds * 1000 : nowMs + ID_TOKEN_MS }
}
