import { atLeastOneOf, choice, keyedList, object, ref, set, string, type Definitions } from '../../schema.ts'

/** Gateway API's header filter and header match, and the traffic policy made of the filter. */
export const headerModifiersDefinitions: Definitions = {
  HTTPHeader: object(
    'A header and its value.',
    { name: ref('HTTPHeaderName', 'Name, matched without regard to case.'), value: string('Value; may be empty.', { maxLength: 4096 }) },
    ['name', 'value'],
  ),
  HTTPHeaderFilter: object('Changes to the headers of a request or response, made in the order add, set, remove (Gateway API HTTPHeaderFilter).', {
    set: keyedList('name', ref('HTTPHeader'), 'Headers to set; every existing value is replaced.', undefined, 16),
    add: keyedList('name', ref('HTTPHeader'), 'Headers to add as a further field line.', undefined, 16),
    remove: set(ref('HTTPHeaderName', 'Header name.'), 'Headers to remove.', undefined, 16),
  }),
  HTTPHeaderMatch: object(
    'A condition on one header (Gateway API HTTPHeaderMatch).',
    {
      type: choice(['Exact', 'RegularExpression'], 'How the value is compared. RegularExpression must match the whole value; RE2 syntax.', {
        default: 'Exact',
      }),
      name: ref('HTTPHeaderName', 'Name, matched without regard to case.'),
      value: string('Value or pattern.', { minLength: 1, maxLength: 4096 }),
    },
    ['name', 'value'],
  ),
  HeaderModifiers: object(
    'Changes to request and response headers with fixed values; see `transformation` for computed ones. A header filter written in the route itself replaces this.',
    {
      request: ref('HTTPHeaderFilter', 'Changes to the request sent to the backend.'),
      response: ref('HTTPHeaderFilter', 'Changes to the response sent to the client, locally made responses included.'),
    },
    [],
    [atLeastOneOf('request', 'response')],
  ),
}
