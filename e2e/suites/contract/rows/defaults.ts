import { backend, backendPolicy, frontend, parameters, service, traffic, type Manifest } from './row.ts'

type DefaultRow = [sentence: string, manifest: Manifest, spec: Record<string, unknown>]

const jwks = { jwksPath: '/jwks', backendRef: service }

/** Defaults that the API server sets. */
export const defaultRows: DefaultRow[] = [
  ['phase PostRouting', traffic({ csrf: {} }), { traffic: { phase: 'PostRouting' } }],
  ['backendRef to a Service', traffic({ extProc: { backendRef: service } }), { traffic: { extProc: { backendRef: { group: '', kind: 'Service' } } } }],
  [
    'JWT Strict, keys cached for 5m',
    traffic({ jwtAuthentication: { providers: [{ issuer: 'i', jwks: { remote: jwks } }] } }),
    { traffic: { jwtAuthentication: { mode: 'Strict', providers: [{ jwks: { remote: { cacheDuration: '5m' } } }] } } },
  ],
  [
    'basic Strict, realm Restricted',
    traffic({ basicAuthentication: { users: ['u:h'] } }),
    { traffic: { basicAuthentication: { mode: 'Strict', realm: 'Restricted' } } },
  ],
  ['API key Strict', traffic({ apiKeyAuthentication: { secretRef: { name: 's' } } }), { traffic: { apiKeyAuthentication: { mode: 'Strict' } } }],
  ['authorization Allow', traffic({ authorization: { policy: { matchExpressions: ['true'] } } }), { traffic: { authorization: { action: 'Allow' } } }],
  [
    'call-outs fail closed',
    traffic({ extProc: { backendRef: service, processingOptions: {} }, extAuth: { backendRef: service, grpc: {} } }),
    {
      traffic: {
        extAuth: { failureMode: 'FailClosed' },
        extProc: {
          failureMode: 'FailClosed',
          processingOptions: { requestBodyMode: 'FullDuplexStreamed', responseTrailerMode: 'Send', allowModeOverride: false },
        },
      },
    },
  ],
  [
    'descriptors count requests',
    traffic({ rateLimit: { global: { backendRef: service, domain: 'd', descriptors: [{ entries: [{ name: 'n', expression: '1' }] }] } } }),
    { traffic: { rateLimit: { global: { descriptors: [{ unit: 'Requests' }] } } } },
  ],
  ['CORS maxAge 5', traffic({ cors: {} }), { traffic: { cors: { maxAge: 5 } } }],
  ['one retry', traffic({ retry: {} }), { traffic: { retry: { attempts: 1 } } }],
  ['keepalive 9, 180s, 180s', frontend({ tcp: { keepalive: {} } }), { frontend: { tcp: { keepalive: { retries: 9, time: '180s', interval: '180s' } } } }],
  ['OTLP over GRPC', frontend({ tracing: { backendRef: service } }), { frontend: { tracing: { protocol: 'GRPC' } } }],
  [
    'X-Forwarded-For, FailClosed, Sanitize',
    frontend({ http: { clientIP: { trustedHops: 1 }, xForwardedClientCert: {} } }),
    { frontend: { http: { clientIP: { header: 'X-Forwarded-For', failureMode: 'FailClosed' }, xForwardedClientCert: { mode: 'Sanitize' } } } },
  ],
  ['PROXY protocol V2 Strict', frontend({ proxyProtocol: {} }), { frontend: { proxyProtocol: { version: 'V2', mode: 'Strict' } } }],
  ['eviction for 3s', backendPolicy({ health: { eviction: {} } }), { backend: { health: { eviction: { duration: '3s' } } } }],
  ['cloudC AccessToken', backendPolicy({ auth: { cloudC: {} } }), { backend: { auth: { cloudC: { type: 'AccessToken' } } } }],
  [
    'prompt caching',
    backendPolicy({ ai: { promptCaching: {} } }),
    { backend: { ai: { promptCaching: { cacheSystem: true, cacheMessages: true, cacheTools: false, minTokens: 1024 } } } },
  ],
  [
    'guards mask, at us-central1',
    backendPolicy({ ai: { promptGuard: { request: [{ regex: { builtins: ['Ssn'] } }, { modelArmor: { templateId: 't', projectId: 'p' } }] } } }),
    { backend: { ai: { promptGuard: { request: [{ regex: { action: 'Mask' } }, { modelArmor: { location: 'us-central1' } }] } } } },
  ],
  [
    'MCP authentication Strict',
    backendPolicy({ mcp: { authentication: { jwks } } }),
    { backend: { mcp: { authentication: { mode: 'Strict', jwks: { cacheDuration: '5m' } } } } },
  ],
  [
    'MCP sessions',
    backend({ mcp: { targets: [{ name: 'a', static: { host: 'h', port: 1 } }] } }),
    { mcp: { sessionRouting: 'Stateful', failureMode: 'FailClosed', prefixMode: 'Conditional', targets: [{ static: { protocol: 'StreamableHTTP' } }] } },
  ],
  ['providerB v1', backend({ ai: { provider: { providerB: { endpoint: 'e' } } } }), { ai: { provider: { providerB: { apiVersion: 'v1' } } } }],
  ['providerF us-east-1', backend({ ai: { provider: { providerF: {} } } }), { ai: { provider: { providerF: { region: 'us-east-1' } } } }],
  ['nothing in ProxyParameters', parameters({ logging: {}, image: {}, mesh: {} }), { logging: {}, image: {}, mesh: {} }],
]
