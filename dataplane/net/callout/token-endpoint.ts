import { isJsonObject, type JsonObject } from '#api/json/index.ts'
import { HeaderList } from '../../http/headers.ts'

/** Id and secret of the gateway at an authorization server. */
export interface OAuthClient {
  readonly id: string
  readonly secret: string
}

/** Headers of a request to a token endpoint. `client` authenticates by Basic; undefined: not in a header. */
export function tokenRequestHeaders(client: OAuthClient | undefined): HeaderList {
  const headers = new HeaderList(['content-type', 'application/x-www-form-urlencoded', 'accept', 'application/json'])
  if (client !== undefined) headers.append('authorization', `Basic ${Buffer.from(`${formEncode(client.id)}:${formEncode(client.secret)}`).toString('base64')}`)
  return headers
}

/** RFC 6749 §2.3.1: id and secret are form-encoded before they are joined. */
const formEncode = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

/** The object that a text of JSON is; undefined if it is none. */
export function parseObject(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString())
    return isJsonObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
