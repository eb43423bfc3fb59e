import { Cidr, Ip } from '../address.ts'
import { badArgument } from '../error.ts'
import type { Value } from '../values.ts'
import type { FunctionTable } from './table.ts'

function toIp(value: Value): Ip | undefined {
  if (value instanceof Ip) return value
  return typeof value === 'string' ? Ip.parse(value) : undefined
}

function toCidr(value: Value): Cidr | undefined {
  if (value instanceof Cidr) return value
  return typeof value === 'string' ? Cidr.parse(value) : undefined
}

function isNetworkText(value: Value): boolean {
  return typeof value === 'string' || value instanceof Ip || value instanceof Cidr
}

function ipMethod(read: (ip: Ip) => Value): (value: Value) => Value {
  return (value) => (value instanceof Ip ? read(value) : undefined)
}

function isLoopback(ip: Ip): boolean {
  return ip.isIn('127.0.0.0', 8) || ip.isIn('::1', 128)
}

function isMulticast(ip: Ip): boolean {
  return ip.isIn('224.0.0.0', 4) || ip.isIn('ff00::', 8)
}

function isLinkLocalUnicast(ip: Ip): boolean {
  return ip.isIn('169.254.0.0', 16) || ip.isIn('fe80::', 10)
}

/** Private addresses are global unicast, as in Go and Kubernetes. */
function isGlobalUnicast(ip: Ip): boolean {
  return ip.value !== 0n && !ip.isIn('255.255.255.255', 32) && !isLoopback(ip) && !isMulticast(ip) && !isLinkLocalUnicast(ip)
}

export const netFunctions: FunctionTable = {
  'isIP/1': (text: Value) => (typeof text === 'string' ? Ip.parse(text) !== undefined : undefined),
  'isCIDR/1': (text: Value) => (typeof text === 'string' ? Cidr.parse(text) !== undefined : undefined),
  'ip/1': (value: Value) => (isNetworkText(value) ? (toIp(value) ?? badArgument) : undefined),
  'ip.isCanonical/1': (text: Value) => {
    if (typeof text !== 'string') return undefined
    const ip = Ip.parse(text)
    return ip === undefined ? badArgument : ip.toString() === text
  },
  'cidr/1': (value: Value) => (isNetworkText(value) ? (toCidr(value) ?? badArgument) : undefined),
}

export const netMethods: FunctionTable = {
  'family/0': ipMethod(({ family }) => BigInt(family)),
  'isUnspecified/0': ipMethod(({ value }) => value === 0n),
  'isLoopback/0': ipMethod(isLoopback),
  'isLinkLocalMulticast/0': ipMethod((ip) => ip.isIn('224.0.0.0', 24) || (ip.mask(16).toString() === 'ff02::' && ip.family === 6)),
  'isLinkLocalUnicast/0': ipMethod(isLinkLocalUnicast),
  'isGlobalUnicast/0': ipMethod(isGlobalUnicast),
  'containsIP/1': (cidr: Value, other: Value) => {
    if (!(cidr instanceof Cidr) || !isNetworkText(other)) return undefined
    const ip = toIp(other)
    return ip === undefined ? badArgument : cidr.contains(ip)
  },
  'containsCIDR/1': (cidr: Value, other: Value) => {
    if (!(cidr instanceof Cidr) || !isNetworkText(other)) return undefined
    const inner = toCidr(other)
    return inner === undefined ? badArgument : inner.prefix >= cidr.prefix && cidr.contains(inner.ip)
  },
  'ip/0': (cidr: Value) => (cidr instanceof Cidr ? cidr.ip : undefined),
  'masked/0': (cidr: Value) => (cidr instanceof Cidr ? new Cidr(cidr.ip.mask(cidr.prefix), cidr.prefix) : undefined),
  'prefixLength/0': (cidr: Value) => (cidr instanceof Cidr ? BigInt(cidr.prefix) : undefined),
}
