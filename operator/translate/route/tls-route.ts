import type { TLSRoute } from '../../source/objects.ts'
import { hostnamesOf } from './attach.ts'
import type { Context } from '../common/context.ts'
import type { CompiledRoute } from './route.ts'
import { compileL4 } from './tcp-route.ts'

/** Passthrough or terminated is the listener's matter; the route only chooses by SNI. */
export function compileTlsRoute(context: Context, route: TLSRoute): CompiledRoute {
  return compileL4(context, route, hostnamesOf(route), '.tls')
}
