import { atMostOneOf, integer, keyedList, object, ref, string, type Definitions } from '../../schema.ts'
import { whenChanging } from '../shared.ts'

export const directResponseDefinitions: Definitions = {
  DirectResponse: object(
    'Responds to the request without forwarding it, after authentication, authorization and limits.',
    {
      status: integer('Status code.', 200, 599),
      body: string('Body; none when not set.', { minLength: 1, maxLength: 4096 }),
      bodyExpression: ref('CELExpression', 'Body: strings and bytes unchanged, other values as JSON. If it fails, the response is 500.'),
      headers: keyedList('name', ref('DirectResponseHeader'), 'Headers. Without `content-type` here, the response has none.', 1, 16),
      when: whenChanging,
    },
    ['status'],
    [atMostOneOf('body', 'bodyExpression')],
  ),
  DirectResponseHeader: object(
    'A header whose value is computed.',
    {
      name: ref('HTTPHeaderName', 'Name. Headers that frame the message, such as `content-length`, are ignored.'),
      value: ref('CELExpression', 'Value. If it fails, or is neither string, bytes nor number, the header is omitted.'),
    },
    ['name', 'value'],
  ),
}
