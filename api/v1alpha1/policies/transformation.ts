import { atLeastOneOf, keyedList, map, object, ref, set, type Definitions } from '../../schema.ts'
import { whenChanging } from '../shared.ts'

export const transformationDefinitions: Definitions = {
  HeaderTransformation: object(
    'A header whose value is computed.',
    {
      name: ref('HeaderName', 'Header, or pseudo header: `:method`, `:scheme`, `:authority`, `:path` (with query) on requests, `:status` on responses.'),
      value: ref(
        'CELExpression',
        'Value. If it fails, or is neither string, bytes nor number, the header is removed, so that a client cannot inject its own; a pseudo header stays unchanged.',
      ),
    },
    ['name', 'value'],
  ),
  Transform: object(
    'Changes to one message, made in the order metadata, add, set, remove, body.',
    {
      set: keyedList('name', ref('HeaderTransformation'), 'Headers to set; every existing value is replaced.', 1, 16),
      add: keyedList('name', ref('HeaderTransformation'), 'Headers to add; an existing header gets a further field line.', 1, 16),
      remove: set(ref('HeaderName', 'Header name; pseudo headers cannot be removed.'), 'Headers to remove.', 1, 16),
      body: ref(
        'CELExpression',
        'New body: strings and bytes unchanged, other values as JSON. If it fails, the body is empty. An expression that reads the old body makes the proxy buffer it, up to `frontend.http.maxBufferSize`.',
      ),
      metadata: map(
        ref('CELExpression'),
        'Values computed first and kept as `metadata.<key>` for later expressions, the response side and logs. An entry that fails is omitted.',
        1,
        16,
      ),
    },
    [],
    [atLeastOneOf('set', 'add', 'remove', 'body', 'metadata')],
  ),
  Transformation: object(
    'Mutates requests and responses with CEL expressions.',
    {
      request: ref('Transform', 'Changes to the request before it is forwarded.'),
      response: ref('Transform', 'Changes to the response before it reaches the client; sees `request` as it was sent, and `response`.'),
      when: whenChanging,
    },
    [],
    [atLeastOneOf('request', 'response')],
  ),
}
