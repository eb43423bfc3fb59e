import { readSigningKey, SIGNING_ENTRY } from '#api/credentials/signing-key.ts'
import type { BackendAuth, CloudAAuth, CloudBAuth, CloudCAuth, JWTSign, OAuthCredentials, ResolvedSecret } from '#gen/config/types.ts'
import type { UpstreamAuth } from '../upstream/auth.ts'
import { readAwsSecret, readAzureSecret } from '../upstream/cloud/index.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import type { OAuthClient } from '../callout/token-endpoint.ts'
import { createSigner } from './oauth/jwt-sign.ts'
import { createTokenSource } from './oauth/token-source.ts'
import type { FindDestination } from './tunnel.ts'

type Secrets = ConfigSnapshot['secrets']

/** Entry of a Secret that secretRef reads. */
const ENTRY = 'Authorization'

/**
 * Compiles the credentials of a destination (part 2, Backend authentication). Unresolved credentials are `broken`: no request is sent
 * without its configured credentials. `host`: the destination's hostname, if any. `find` resolves token endpoints.
 */
export function compileBackendAuth(auth: BackendAuth, secrets: Secrets, find: FindDestination, host?: string): UpstreamAuth {
  if (auth.key !== undefined) return bearer(auth.key, 'key')
  if (auth.passthrough !== undefined) return { kind: 'passthrough' }
  if (auth.cloudA !== undefined) return compileCloudA(auth.cloudA, secrets)
  if (auth.cloudB !== undefined) return compileCloudB(auth.cloudB, secrets)
  if (auth.cloudC !== undefined) return compileCloudC(auth.cloudC, host)
  if (auth.oauth !== undefined) return compileOAuth(auth.oauth, secrets, find)
  if (auth.jwtSign !== undefined) return compileJwtSign(auth.jwtSign, secrets)
  if (auth.secretRef === undefined) return broken('auth is empty: set one of key, secretRef, passthrough, aws, azure, gcp, oauth, jwtSign')
  const data = dataOf(auth.secretRef, secrets)
  if (data === undefined) return broken('the Secret of secretRef does not resolve')
  const value = data[ENTRY]
  if (value === undefined) return broken(`the Secret of secretRef has no entry ${ENTRY}`)
  return bearer(value.trim().replace(/^bearer(?: +|$)/i, ''), 'secretRef')
}

function compileCloudA({ secretRef }: CloudAAuth, secrets: Secrets): UpstreamAuth {
  if (secretRef === undefined) return { kind: 'aws', credentials: undefined }
  const data = dataOf(secretRef, secrets)
  if (data === undefined) return broken('the Secret of aws does not resolve')
  const credentials = readAwsSecret(data)
  return credentials === undefined ? broken('the Secret of aws needs the entries accessKey and secretKey') : { kind: 'aws', credentials }
}

function compileCloudB({ secretRef, managedIdentity }: CloudBAuth, secrets: Secrets): UpstreamAuth {
  if (managedIdentity !== undefined) return { kind: 'azure', identity: { managed: managedIdentity } }
  if (secretRef === undefined) return { kind: 'azure', identity: { ambient: true } }
  const data = dataOf(secretRef, secrets)
  if (data === undefined) return broken('the Secret of azure does not resolve')
  const secret = readAzureSecret(data)
  return secret === undefined ? broken('the Secret of azure needs the entries clientId, tenantId and clientSecret') : { kind: 'azure', identity: { secret } }
}

function compileCloudC({ type, audience }: CloudCAuth, host: string | undefined): UpstreamAuth {
  if (type !== 'IdToken') return { kind: 'google', token: { type: 'AccessToken' } }
  const wanted = audience ?? (host === undefined ? undefined : `https://${host}`)
  return wanted === undefined ? broken('gcp needs an audience: the backend has no host name') : { kind: 'google', token: { type: 'IdToken', audience: wanted } }
}

function compileOAuth(config: OAuthCredentials, secrets: Secrets, find: FindDestination): UpstreamAuth {
  const client = config.secretRef && readClient(config.secretRef, secrets)
  if (typeof client === 'string') return broken(client)
  if (config.grantType === 'ClientCredentials' && client === undefined) return broken('oauth needs secretRef with ClientCredentials')
  return { kind: 'oauth', source: createTokenSource(config, { client, find }) }
}

function compileJwtSign(config: JWTSign, secrets: Secrets): UpstreamAuth {
  const key = dataOf(config.secretRef, secrets)?.[SIGNING_ENTRY]
  if (key === undefined) return broken(`the Secret of jwtSign does not resolve, or has no entry ${SIGNING_ENTRY}`)
  const signing = readSigningKey(key)
  return typeof signing === 'string' ? broken(`the entry ${SIGNING_ENTRY} of jwtSign ${signing}`) : { kind: 'oauth', source: createSigner(config, signing) }
}

/** The client of a Secret, or why there is none. */
function readClient(reference: ResolvedSecret, secrets: Secrets): OAuthClient | string {
  const data = dataOf(reference, secrets)
  if (data === undefined) return 'the Secret of oauth does not resolve'
  const id = (data['clientId'] ?? data['clientID'])?.trim()
  const secret = data['clientSecret']?.trim()
  return id && secret ? { id, secret } : 'the Secret of oauth needs the entries clientId and clientSecret'
}

const dataOf = ({ secret }: ResolvedSecret, secrets: Secrets): Readonly<Record<string, string>> | undefined =>
  secret === undefined ? undefined : secrets.get(secret)?.data

const broken = (reason: string): UpstreamAuth => ({ kind: 'broken', reason })

/** Rejects tokens that would end the header line or be sent as other bytes than configured. */
function bearer(token: string, field: 'key' | 'secretRef'): UpstreamAuth {
  if (token === '') return broken(`the credential of ${field} is empty`)
  return /^[\x20-\x7e]+$/.test(token) ? { kind: 'bearer', token } : broken(`the credential of ${field} is not printable ASCII`)
}
