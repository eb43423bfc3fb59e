import { envelope, group, kind, list, map, objectName, oneOf, port, shape, text } from './shared.ts'

const portNumber = shape({ 'number!': port })

export const inferencePool = envelope({
  'spec!': shape({
    'selector!': shape({ 'matchLabels!': map(text({ maxLength: 63 })) }),
    'targetPorts!': list(portNumber, 1, 8),
    appProtocol: oneOf(['http', 'kubernetes.io/h2c'], { default: 'http' }),
    endpointPickerRef: shape({
      group: group(''),
      kind: kind('Service'),
      'name!': objectName,
      port: portNumber,
      failureMode: oneOf(['FailOpen', 'FailClose'], { default: 'FailClose' }),
    }),
  }),
})
