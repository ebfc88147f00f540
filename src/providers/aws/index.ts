import type { Provider } from '../provider.ts';
import type { ProviderContext } from '../registry.ts';
import { VmProvider, type VmProviderOptions } from '../vm/index.ts';
import { AwsDriver } from './driver.ts';
import type { ImageChoice } from './image-choice.ts';

/** Amazon Web Services as a provider. */
export class AwsProvider extends VmProvider<ImageChoice> {
  declare readonly stop: NonNullable<Provider['stop']>;
  declare readonly start: NonNullable<Provider['start']>;

  constructor(context: ProviderContext, options: VmProviderOptions = {}) {
    super(context, new AwsDriver(context), options);
  }
}
