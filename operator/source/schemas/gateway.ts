import { GATEWAY_GROUP } from '#api/names.ts'
import type { Schema } from '#api/schema.ts'
import {
  anything,
  controllerName,
  envelope,
  group,
  hostname,
  keyed,
  kind,
  labelSelector,
  list,
  localRef,
  map,
  namespace,
  objectName,
  objectRef,
  oneOf,
  port,
  preciseHostname,
  secretRef,
  sectionName,
  shape,
  text,
  integer,
} from './shared.ts'

const allowedRoutes = shape(
  {
    namespaces: shape({ from: oneOf(['All', 'Selector', 'Same'], { default: 'Same' }), selector: labelSelector }, { default: { from: 'Same' } }),
    kinds: list(shape({ group: group(GATEWAY_GROUP), 'kind!': kind() }), undefined, 8),
  },
  { default: { namespaces: { from: 'Same' } } },
)

const listenerTls = shape({
  mode: oneOf(['Terminate', 'Passthrough'], { default: 'Terminate' }),
  certificateRefs: list(secretRef, undefined, 64),
  options: map(text({ maxLength: 4096 })),
})

const listener = (listenerPort: Readonly<Record<string, Schema>>): Schema =>
  shape({
    'name!': sectionName,
    hostname,
    ...listenerPort,
    'protocol!': text({ minLength: 1, maxLength: 255, pattern: '^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|^[a-z0-9][-a-z0-9.]*/[A-Za-z0-9]+$' }),
    tls: listenerTls,
    allowedRoutes,
  })

const frontendTls = shape({
  validation: shape({
    'caCertificateRefs!': list(objectRef, 1, 16),
    mode: oneOf(['AllowValidOnly', 'AllowInsecureFallback'], { default: 'AllowValidOnly' }),
  }),
})

export const gatewayClass = envelope({
  'spec!': shape({
    'controllerName!': controllerName,
    description: text({ maxLength: 64 }),
    parametersRef: objectRef,
  }),
})

export const gateway = envelope({
  'spec!': shape({
    'gatewayClassName!': objectName,
    'listeners!': keyed('name', listener({ 'port!': port }), 1, 64),
    addresses: list(shape({ type: text({ minLength: 1, maxLength: 253, default: 'IPAddress' }), value: text({ maxLength: 253 }) }), undefined, 16),
    infrastructure: shape({ labels: map(text({ maxLength: 63 })), annotations: map(text({ maxLength: 4096 })), parametersRef: localRef }),
    allowedListeners: shape({
      namespaces: shape({ from: oneOf(['All', 'Selector', 'Same', 'None'], { default: 'None' }), selector: labelSelector }, { default: { from: 'None' } }),
    }),
    defaultScope: oneOf(['All', 'None']),
    tls: shape({
      backend: shape({ clientCertificateRef: secretRef }),
      frontend: shape({ 'default!': frontendTls, perPort: keyed('port', shape({ 'port!': port, 'tls!': frontendTls }), undefined, 64) }),
    }),
  }),
})

export const listenerSet = envelope({
  'spec!': shape({
    'parentRef!': shape({ group: group(GATEWAY_GROUP), kind: kind('Gateway'), 'name!': objectName, namespace }),
    'listeners!': keyed('name', listener({ port: integer(0, 65_535) }), 1, 64),
  }),
})

export const referenceGrant = envelope({
  'spec!': shape({
    'from!': list(shape({ 'group!': group(), 'kind!': kind(), 'namespace!': namespace }), 1, 16),
    'to!': list(shape({ 'group!': group(), 'kind!': kind(), name: objectName }), 1, 16),
  }),
})

const altName = shape({ 'type!': oneOf(['Hostname', 'URI']), hostname, uri: text({ minLength: 1, maxLength: 253, pattern: '^[^:/?#]+://[^/?#]*' }) })

export const backendTlsPolicy = envelope({
  'spec!': shape({
    'targetRefs!': list(shape({ 'group!': group(), 'kind!': kind(), 'name!': objectName, sectionName }), 1, 16),
    'validation!': shape({
      caCertificateRefs: list(localRef, undefined, 8),
      wellKnownCACertificates: text({ minLength: 1, maxLength: 253 }),
      'hostname!': preciseHostname,
      subjectAltNames: list(altName, undefined, 5),
    }),
    options: map(anything),
  }),
})
