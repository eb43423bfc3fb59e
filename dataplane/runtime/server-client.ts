import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { issuedSecrets } from './issued-secrets.ts'

/** What a client of a server says about a failure: the message, or those of all addresses that were tried. */
export const messageOf = (error: unknown): string =>
  error instanceof AggregateError ? error.errors.map(messageOf).join('; ') : error instanceof Error ? error.message : String(error)

/** Reads a file with a password, without the end of its line. */
export async function readPasswordFile(path: string): Promise<string> {
  const password = (await readFile(path, 'utf8')).replace(/\r?\n$/, '')
  issuedSecrets.add(password)
  return password
}

/**
 * The name of a server for TLS: it is sent and verified. An address is verified only, by the IP addresses of the certificate: RFC 6066 section 3
 * permits no addresses as server names, and Node rejects them.
 */
export const tlsNameOf = (host: string): { readonly host: string; readonly servername?: string } => (isIP(host) === 0 ? { host, servername: host } : { host })
