import { object, ref, type Definitions } from '../../schema.ts'
import { port } from '../shared.ts'

export const staticBackendDefinitions: Definitions = {
  StaticBackend: object('One fixed destination.', { host: ref('ShortString', 'Host name or IP address.'), port: port('Port.') }, ['host', 'port']),
  A2ABackend: object('An agent that speaks A2A.', { host: ref('ShortString', 'Host name or IP address.'), port: port('Port.') }, ['host', 'port']),
}
