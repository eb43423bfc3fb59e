import { findAwsCredentials, type ExpiringAwsCredentials } from './aws.ts'
import type { AwsCredentials } from './aws-sign.ts'
import { requestWithManagedIdentity, requestWithSecret, findAzureToken, type ClientSecret, type ManagedIdentity } from './azure.ts'
import { cacheUntilExpiry } from './cached.ts'
import { findGoogleToken, type GoogleTokenKind } from './google.ts'
import { machine, type CloudContext, type Token } from './source.ts'

export { CREDENTIAL_TIMEOUT_MS, CredentialError } from './fetch.ts'
export { signAws, type AwsCredentials } from './aws-sign.ts'
export { readAwsSecret } from './aws.ts'
export { readAzureSecret } from './azure.ts'
export type { GoogleTokenKind } from './google.ts'

export type AzureIdentity = { readonly secret: ClientSecret } | { readonly managed: ManagedIdentity } | { readonly ambient: true }

/** Limit of cached identities. They are kept over config versions. */
const SOURCE_LIMIT = 1000

/** Cloud credentials, each cached until shortly before it expires. */
export class CloudCredentials {
  readonly #context: CloudContext
  readonly #sources = new Map<string, () => Promise<unknown>>()

  constructor(context: CloudContext = machine) {
    this.#context = context
  }

  /** AWS credentials of the process environment. All methods reject with a CredentialError. */
  aws(): Promise<AwsCredentials> {
    return this.#ask<ExpiringAwsCredentials>('aws', () => findAwsCredentials(this.#context))
  }

  azure(identity: AzureIdentity, scope: string): Promise<string> {
    const fetch = (): Promise<Token> => {
      if ('secret' in identity) return requestWithSecret(identity.secret, scope, this.#context)
      if ('managed' in identity) return requestWithManagedIdentity(identity.managed, scope, this.#context)
      return findAzureToken(scope, this.#context)
    }
    return this.#ask<Token>(`azure ${scope} ${JSON.stringify(identity)}`, fetch).then(({ token }) => token)
  }

  google(kind: GoogleTokenKind): Promise<string> {
    return this.#ask<Token>(`google ${JSON.stringify(kind)}`, () => findGoogleToken(kind, this.#context)).then(({ token }) => token)
  }

  #ask<T extends { readonly expiresAtMs: number | undefined }>(key: string, fetch: () => Promise<T>): Promise<T> {
    let source = this.#sources.get(key) as (() => Promise<T>) | undefined
    if (source === undefined) {
      if (this.#sources.size >= SOURCE_LIMIT) this.#sources.clear()
      this.#sources.set(key, (source = cacheUntilExpiry(fetch, this.#context.nowMs)))
    }
    return source()
  }
}

/** Shared instance for the process environment. */
export const cloudCredentials = new CloudCredentials()
