import { choice, object, type Definitions } from '../../schema.ts'

export const hostRewriteDefinitions: Definitions = {
  HostnameRewrite: object(
    'Host header of requests to the backend. Without this policy: Auto for backends named by host, None for Services and IP addresses. Ignored if a URLRewrite filter of the route sets a host.',
    { mode: choice(['Auto', 'None'], 'Auto sets Host from the destination; None passes the Host of the client.') },
    ['mode'],
  ),
}
