import type { Duplex } from 'node:stream'
import type { Body } from './body.ts'
import type { HeaderList } from './headers.ts'

export type HttpVersion = 'HTTP/1.0' | 'HTTP/1.1' | 'HTTP/2'

/**
 * A request head, the same for every protocol version: hop-by-hop headers are already removed (traffic.md §5.1),
 * `host` is in `authority` and not in `headers`.
 */
export interface RequestHead {
  method: string
  /** Path and query as received, in origin form: starts with `/`, except `*` (OPTIONS) and '' (CONNECT). */
  target: string
  scheme: 'http' | 'https'
  /** Host with optional port; '' when the client sent none. */
  authority: string
  version: HttpVersion
  headers: HeaderList
  /** Undefined when the message has no body. */
  body: Body | undefined
  /** Value of the client's `Upgrade` field (HTTP/1.1); such a request has no body. */
  upgrade: string | undefined
  /** The client sent `te: trailers`, which is forwarded to the upstream. HTTP/2 clients receive trailers in any case. */
  acceptsTrailers: boolean
  /** Gateways that the request came through; undefined: none that left a mark. */
  loop?: LoopTrail | undefined
}

/** What the loop marks of a request say (upstream/loop.ts). */
export interface LoopTrail {
  /** How often it came through this gateway. */
  readonly passes: number
  /** Marks of other gateways, for the next one. */
  readonly others: string
}

/** A response head with its body; trailers are passed at the end of the body. Hop-by-hop headers are already removed. */
export interface ResponseHead {
  status: number
  headers: HeaderList
  body: Body | undefined
  /** Set on 101: the upstream connection, to be spliced with the client's. */
  upgraded: UpgradedSocket | undefined
}

/** A connection that carries raw bytes after 101 or CONNECT. */
export interface UpgradedSocket {
  /** Paused, without listeners for its data. */
  readonly socket: Duplex
  /** Bytes that arrived after the head. */
  readonly head: Buffer
}

/** Path of an origin-form target, without its query. */
export function pathOf(target: string): string {
  const mark = target.indexOf('?')
  return mark === -1 ? target : target.slice(0, mark)
}

/** Query of an origin-form target, without `?`; '' when there is none. */
export function queryOf(target: string): string {
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

/** Host of an authority, without port; IPv6 literals keep their brackets. */
export function hostOf(authority: string): string {
  const end = authority.indexOf(']')
  const colon = authority.indexOf(':', end === -1 ? 0 : end)
  return colon === -1 ? authority : authority.slice(0, colon)
}

/** `host:port`, IPv6 literals in brackets (RFC 3986 §3.2.2). */
export function authorityOf(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** The Host of requests to an origin: the port is omitted if it is the default of the scheme (RFC 9110 §7.2). */
export function originAuthority(host: string, port: number, isTls: boolean): string {
  return withoutDefaultPort(authorityOf(host, port), isTls)
}

/** An authority without the default port of its scheme. */
export function withoutDefaultPort(authority: string, isTls: boolean): string {
  const suffix = isTls ? ':443' : ':80'
  return authority.endsWith(suffix) ? authority.slice(0, -suffix.length) : authority
}

/** A host as sockets and certificates need it: IPv6 literals without brackets. */
export function withoutBrackets(host: string): string {
  return host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
}

/** Port of an authority, or undefined. */
export function portOf(authority: string): number | undefined {
  const host = hostOf(authority)
  return host.length === authority.length ? undefined : Number(authority.slice(host.length + 1))
}
