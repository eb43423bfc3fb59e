import type { BackendRef, RouteExtAuth } from '#gen/config/types.ts'
import type { ExternalAuthFilter } from '../../source/gateway-api.ts'
import { invalidBackend, resolveBackend, type RefSink } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Referrer } from '../common/reference-grant.ts'

/** Converts an ExternalAuth filter (GEP-1494) to a policy. If its server does not resolve, all requests are rejected. */
export function compileExternalAuth(context: Context, from: Referrer, filter: ExternalAuthFilter, refs: RefSink): RouteExtAuth {
  const backend = resolveBackend(context, from, filter.backendRef)
  let backendRef: BackendRef = invalidBackend
  if ('fault' in backend) refs.unresolved.push(backend.fault)
  else {
    refs.targets.push(backend.target)
    backendRef = backend.ref
  }
  const maxSize = filter.forwardBody?.maxSize ?? 0
  const server = { backendRef, ...(maxSize > 0 ? { forwardBody: { maxSize } } : {}) }
  return filter.protocol === 'GRPC' ? grpcAuth(server, filter.grpc) : httpAuth(server, filter.http)
}

type AuthServer = Pick<RouteExtAuth['policy'], 'backendRef' | 'forwardBody'>

function grpcAuth(server: AuthServer, { allowedHeaders = [] }: NonNullable<ExternalAuthFilter['grpc']> = {}): RouteExtAuth {
  return { policy: { ...server, grpc: {} }, ...(allowedHeaders.length > 0 ? { grpcHeaders: [...allowedHeaders] } : {}) }
}

/** `Authorization` is always sent. Without allowedResponseHeaders, all headers of the auth server's response are copied. */
function httpAuth(
  server: AuthServer,
  { path = '', allowedHeaders = [], allowedResponseHeaders = [] }: NonNullable<ExternalAuthFilter['http']> = {},
): RouteExtAuth {
  return {
    policy: {
      ...server,
      http: {
        ...(path === '' ? {} : { path: `${JSON.stringify(path.replace(/\/+$/, ''))} + string(request.pathAndQuery)` }),
        allowedRequestHeaders: ['Authorization', ...allowedHeaders],
        ...(allowedResponseHeaders.length > 0 ? { allowedResponseHeaders: [...allowedResponseHeaders] } : {}),
      },
    },
    isHostSent: true,
    ...(allowedResponseHeaders.length > 0 ? {} : { areAllHeadersCopied: true }),
  }
}
