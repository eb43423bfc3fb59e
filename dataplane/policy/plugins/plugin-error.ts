/** A plugin that failed: by an error of its own, by a timeout, or because its thread ended. The message is for logs. */
export class PluginError extends Error {
  readonly kind: 'failed' | 'timeout'
  constructor(kind: PluginError['kind'], message: string) {
    super(message)
    this.kind = kind
  }
}
