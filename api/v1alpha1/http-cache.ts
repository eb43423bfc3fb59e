import { choice, object, ref, type Definitions } from '../schema.ts'

export const httpCacheDefinitions: Definitions = {
  HttpCache: object(
    'Stores responses to GET requests as a shared cache (RFC 9111), if the upstream says by `cache-control` or `expires` for how long. Not for backends of type ai, mcp or cloudBackend.',
    {
      tenant: ref(
        'CELExpression',
        'Requests share responses only if this text is equal. Without a value, the request is not cached. Default: all requests share responses.',
      ),
      store: choice(
        ['Memory', 'Redis'],
        'Where responses are stored. Memory: in each worker. Redis: in the server of `config.redis` of the data plane, shared by replicas; without one, in memory. Default: Memory.',
      ),
    },
  ),
}
