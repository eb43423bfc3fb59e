import { GATEWAY_GROUP, GROUP, VERSION } from '#api/names.ts'

export interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; namespace: string }
  spec: unknown
}

/** A title and an object. With `field` and `gist` the object must be rejected at that field, with a message that contains `gist`. */
export type Row = readonly [sentence: string, manifest: Manifest] | readonly [sentence: string, manifest: Manifest, field: string, gist: string]

export const manifest = (kind: string, spec: unknown): Manifest => ({
  apiVersion: `${GROUP}/${VERSION}`,
  kind,
  metadata: { name: 'row', namespace: 'default' },
  spec,
})
export const policy = (spec: unknown): Manifest => manifest('ProxyPolicy', spec)
export const backend = (spec: unknown): Manifest => manifest('ProxyBackend', spec)
export const parameters = (spec: unknown): Manifest => manifest('ProxyParameters', spec)

export const gatewayTarget = { group: GATEWAY_GROUP, kind: 'Gateway', name: 'g' }
export const routeTarget = { group: GATEWAY_GROUP, kind: 'HTTPRoute', name: 'r' }
const backendTarget = { group: GROUP, kind: 'ProxyBackend', name: 'b' }

/** A policy with one section and a target that allows it. */
export const traffic = (section: unknown): Manifest => policy({ targetRefs: [routeTarget], traffic: section })
export const frontend = (section: unknown): Manifest => policy({ targetRefs: [gatewayTarget], frontend: section })
export const backendPolicy = (section: unknown): Manifest => policy({ targetRefs: [backendTarget], backend: section })

export const repeat = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => item(index))
export const entries = <T>(count: number, value: T): Record<string, T> => Object.fromEntries(repeat(count, (index) => [`k${index}`, value]))
export const text = (length: number): string => 'a'.repeat(length)

export const service = { name: 's', port: 80 }
export const proxyBackend = { group: GROUP, kind: 'ProxyBackend', name: 'b' }

/** Messages of the API server for structural violations. */
export const MANY = 'must have at most'
export const FEW = 'should have at least'
export const LONG = 'may not be more than'
export const SHORT = 'should be at least'
export const BIG = 'should be less than or equal to'
export const SMALL = 'should be greater than or equal to'
export const REQUIRED = 'Required value'
export const UNSUPPORTED = 'Unsupported value'
export const PATTERN = 'should match'
export const DUPLICATE = 'Duplicate value'
export const one = (...fields: string[]): string => `exactly one of the fields in [${fields.join(' ')}] must be set`
export const some = (...fields: string[]): string => `at least one of the fields in [${fields.join(' ')}] must be set`
