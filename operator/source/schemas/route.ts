import { GATEWAY_GROUP } from '#api/names.ts'
import type { Schema } from '#api/schema.ts'
import {
  duration,
  envelope,
  flag,
  group,
  headerName,
  headerValue,
  hostname,
  keyed,
  kind,
  list,
  localRef,
  namespace,
  objectName,
  oneOf,
  port,
  preciseHostname,
  sectionName,
  shape,
  text,
  integer,
} from './shared.ts'

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH']

const common = {
  parentRefs: list(shape({ group: group(GATEWAY_GROUP), kind: kind('Gateway'), 'name!': objectName, namespace, sectionName, port }), undefined, 32),
  useDefaultGateways: oneOf(['All', 'None']),
}
const hostnames = list(hostname, undefined, 16)

const backendFields = { group: group(''), kind: kind('Service'), 'name!': objectName, namespace, port }
const backendObjectRef = shape(backendFields)
const weight = integer(0, 1_000_000, { default: 1 })

const headers = keyed('name', shape({ 'name!': headerName, 'value!': headerValue }), undefined, 16)
const headerFilter = shape({ set: headers, add: headers, remove: list(text(), undefined, 16) })
const mirror = shape({
  'backendRef!': backendObjectRef,
  percent: integer(0, 100),
  fraction: shape({ 'numerator!': integer(0), denominator: integer(1, undefined, { default: 100 }) }),
})
const pathModifier = shape({
  'type!': oneOf(['ReplaceFullPath', 'ReplacePrefixMatch']),
  replaceFullPath: text({ maxLength: 1024 }),
  replacePrefixMatch: text({ maxLength: 1024 }),
})
const allowedHeaders = list(text(), undefined, 64)

const grpcFilter = shape({
  'type!': oneOf(['ResponseHeaderModifier', 'RequestHeaderModifier', 'RequestMirror', 'ExtensionRef']),
  requestHeaderModifier: headerFilter,
  responseHeaderModifier: headerFilter,
  requestMirror: mirror,
  extensionRef: localRef,
})
const httpFilter = shape({
  'type!': oneOf(['RequestHeaderModifier', 'ResponseHeaderModifier', 'RequestMirror', 'RequestRedirect', 'URLRewrite', 'ExtensionRef', 'CORS', 'ExternalAuth']),
  requestHeaderModifier: headerFilter,
  responseHeaderModifier: headerFilter,
  requestMirror: mirror,
  requestRedirect: shape({
    scheme: oneOf(['http', 'https']),
    hostname: preciseHostname,
    path: pathModifier,
    port,
    statusCode: oneOf([301, 302, 303, 307, 308], { default: 302 }),
  }),
  urlRewrite: shape({ hostname: preciseHostname, path: pathModifier }),
  cors: shape({
    allowOrigins: list(
      text({ minLength: 1, maxLength: 253, pattern: '^\\*$|^https?://((\\*\\.)?([a-zA-Z0-9-]+\\.)*[a-zA-Z0-9-]+|\\*)(:[0-9]{1,5})?$' }),
      undefined,
      64,
    ),
    allowCredentials: flag,
    allowMethods: list(oneOf([...METHODS, '*']), undefined, 9),
    allowHeaders: list(headerName, undefined, 64),
    exposeHeaders: list(headerName, undefined, 64),
    maxAge: integer(1, undefined, { default: 5 }),
  }),
  extensionRef: localRef,
  externalAuth: shape({
    'protocol!': oneOf(['HTTP', 'GRPC']),
    'backendRef!': backendObjectRef,
    grpc: shape({ allowedHeaders }),
    http: shape({ path: text({ maxLength: 1024 }), allowedHeaders, allowedResponseHeaders: allowedHeaders }),
    forwardBody: shape({ maxSize: integer() }),
  }),
})

const matchType = oneOf(['Exact', 'RegularExpression'], { default: 'Exact' })
const rules = (fields: Readonly<Record<string, Schema>>, filter: Schema): Schema =>
  shape({
    name: sectionName,
    ...fields,
    filters: list(filter, undefined, 16),
    backendRefs: list(shape({ ...backendFields, weight, filters: list(filter, undefined, 16) }), undefined, 16),
    sessionPersistence: shape({
      sessionName: text({ maxLength: 128 }),
      absoluteTimeout: duration,
      idleTimeout: duration,
      type: oneOf(['Cookie', 'Header'], { default: 'Cookie' }),
      cookieConfig: shape({ lifetimeType: oneOf(['Permanent', 'Session'], { default: 'Session' }) }),
    }),
  })

const everyPath = { path: { type: 'PathPrefix', value: '/' } }
const httpMatch = shape({
  path: shape(
    { type: oneOf(['Exact', 'PathPrefix', 'RegularExpression'], { default: 'PathPrefix' }), value: text({ maxLength: 1024, default: '/' }) },
    { default: everyPath.path },
  ),
  headers: keyed('name', shape({ type: matchType, 'name!': headerName, 'value!': headerValue }), undefined, 16),
  queryParams: keyed('name', shape({ type: matchType, 'name!': headerName, 'value!': text({ minLength: 1, maxLength: 1024 }) }), undefined, 16),
  method: oneOf(METHODS),
})

export const httpRoute = envelope({
  'spec!': shape({
    ...common,
    hostnames,
    rules: list(
      rules(
        {
          matches: list(httpMatch, undefined, 64, { default: [everyPath] }),
          timeouts: shape({ request: duration, backendRequest: duration }),
          // 0 turns retrying off (traffic.md §7); the API's schema has no lower bound in older bundles.
          retry: shape({ codes: list(integer(400, 599)), attempts: integer(0), backoff: duration }),
        },
        httpFilter,
      ),
      1,
      16,
      { default: [{ matches: [everyPath] }] },
    ),
  }),
})

export const grpcRoute = envelope({
  'spec!': shape({
    ...common,
    hostnames,
    rules: list(
      rules(
        {
          matches: list(
            shape({
              method: shape({ type: matchType, service: text({ maxLength: 1024 }), method: text({ maxLength: 1024 }) }),
              headers: keyed('name', shape({ type: matchType, 'name!': headerName, 'value!': text({ minLength: 1, maxLength: 4096 }) }), undefined, 16),
            }),
            undefined,
            64,
          ),
        },
        grpcFilter,
      ),
      undefined,
      16,
    ),
  }),
})

const l4Rules = list(shape({ name: sectionName, 'backendRefs!': list(shape({ ...backendFields, weight }), 1, 16) }), 1, 16)
/** hostnames became required with v1; older versions may leave them out. */
export const tlsRoute = envelope({ 'spec!': shape({ ...common, hostnames: list(hostname, undefined, 1024), 'rules!': l4Rules }) })
export const tcpRoute = envelope({ 'spec!': shape({ ...common, 'rules!': l4Rules }) })
