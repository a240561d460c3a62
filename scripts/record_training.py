"""Record the training that the page on learning opens with: ``python -m scripts.record_training``, ten seconds."""

from visformer.adapters.learning.recorded import RECIPE, write
from visformer.adapters.learning.training import Training, watch

if __name__ == "__main__":
    write(Training(RECIPE).sight, [*watch(RECIPE)])
