import { atLeastOneOf, atMostOneOf, exactlyOneOf, integer, list, object, ref, string, type Definitions } from '../schema.ts'

export const responseOverrideDefinitions: Definitions = {
  ResponseOverride: object(
    'Replaces responses: those of the upstream, and those of the gateway itself. With `phase: PreRouting` also responses to requests that match no route. Responses to gRPC requests and to upgrades stay as they are.',
    { rules: list(ref('ResponseOverrideRule'), 'Rules; the first one that matches applies.', 1, 16) },
    ['rules'],
  ),
  ResponseOverrideRule: object(
    'A replacement, and the responses that it applies to.',
    { match: ref('ResponseMatch'), response: ref('ReplacedResponse'), redirect: ref('ResponseRedirect') },
    ['match'],
    [exactlyOneOf('response', 'redirect')],
  ),
  ResponseMatch: object(
    'Conditions, which must all hold.',
    {
      statusCodes: list(
        string('A status code, or a range of them such as `500-599`.', {
          minLength: 3,
          maxLength: 7,
          pattern: '^[2-5][0-9]{2}(-[2-5][0-9]{2})?$',
          'x-kubernetes-validations': [
            { rule: 'self.size() == 3 || self.substring(0, 3) <= self.substring(4)', message: 'the first code of a range must not be above the second' },
          ],
        }),
        'Status codes, of which one must match.',
        1,
        50,
      ),
      headers: list(ref('ResponseHeaderMatch'), 'Headers of the response, which must all match.', 1, 16),
      condition: ref('CELExpression', 'Condition on `request` and the head of `response`. A failure counts as false.'),
    },
    [],
    [atLeastOneOf('statusCodes', 'headers', 'condition')],
  ),
  ResponseHeaderMatch: object(
    'A header of the response.',
    { name: ref('HTTPHeaderName', 'Name.'), value: string('Exact value of one of its lines. Not set: the header is present.', { maxLength: 4096 }) },
    ['name'],
  ),
  ReplacedResponse: object(
    'What clients receive. Headers that describe the replaced content are removed, the others stay.',
    {
      status: integer('Status code. Default: that of the response.', 200, 599),
      contentType: string('`content-type` of the body. Default: text/plain.', { minLength: 1, maxLength: 256, pattern: '^[ -~]+$' }),
      body: string('Body. Default: none.', { maxLength: 4096 }),
      bodyRef: ref('ResponseBodyReference'),
      headers: list(
        object('A header.', { name: ref('HTTPHeaderName', 'Name.'), value: string('Value.', { minLength: 1, maxLength: 4096, pattern: '^[ -~]+$' }) }, [
          'name',
          'value',
        ]),
        'Headers that are set.',
        1,
        16,
      ),
    },
    [],
    [atMostOneOf('body', 'bodyRef')],
  ),
  ResponseBodyReference: object(
    'A body in a ConfigMap in the namespace of the policy, of at most 256 KiB. If it is missing, the body is empty.',
    {
      name: string('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
      key: string('Key of the ConfigMap.', { minLength: 1, maxLength: 253 }),
    },
    ['name', 'key'],
  ),
  ResponseRedirect: object(
    'A redirect in place of the response.',
    {
      location: string('Absolute URL with scheme http or https, or a path.', {
        minLength: 1,
        maxLength: 1024,
        pattern: '^(https?://[!-~]+|/([!-.0-~][!-~]*)?)$',
      }),
      status: { type: 'integer', format: 'int32', enum: [301, 302, 303, 307, 308], description: 'Status code.', default: 302 },
    },
    ['location'],
  ),
}
