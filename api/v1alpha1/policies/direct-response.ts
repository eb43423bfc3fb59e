import { integer, object, string, type Definitions } from '../../schema.ts'

export const directResponseDefinitions: Definitions = {
  DirectResponse: object(
    'Responds to the request without forwarding it, after authentication, authorization and limits.',
    { status: integer('Status code.', 200, 599), body: string('Body; none when not set.', { minLength: 1, maxLength: 4096 }) },
    ['status'],
  ),
}
